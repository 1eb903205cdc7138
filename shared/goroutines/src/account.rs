//! Sums of samples, and the profile that is made of them.

use std::collections::HashMap;
use std::fmt::{self, Display};

use profile::{FrameKind, Label, Labels, Profile, Sample, Stack, StackId, State, Weight, marker};
use symbolize::{Location, Symbolizer};

use crate::sample::{Condition, Stopped};

/// Maximum number of distinct stacks.
const MAX_STACKS: usize = 1 << 16;

/// Counts of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Samples of all goroutines.
    pub samples: u64,
    /// Most goroutines in one sample, without goroutines that have ended.
    pub most: u64,
    /// Goroutines that changed while they were read: their stack is missing.
    pub changed: u64,
    /// Goroutines whose memory was not that of a goroutine. They are in no sum.
    pub invalid: u64,
    /// Goroutines, stacks and samples beyond the capacity. They are in no sum.
    pub beyond: u64,
    /// Samples in which the list could not be read.
    pub unread: u64,
    /// Time of the runtime's own goroutines in ns. It is in no sum.
    pub system_ns: u64,
    /// Number of the runtime's own goroutines, added up over all samples.
    pub system: u64,
    /// Time for which the samples stand, in ns.
    pub ns: u64,
    /// True if the process ended, or executed another program, before the window did.
    pub has_ended: bool,
    /// CPU time of all samples, in ns.
    pub cost_ns: u64,
}

impl Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let samples = self.samples.max(1);
        write!(
            f,
            "{} samples ({:.1} a second) of up to {} goroutines, {:.1} ms of CPU time each",
            self.samples,
            self.samples as f64 / (self.ns.max(1) as f64 / 1e9),
            self.most,
            self.cost_ns as f64 / 1e6 / samples as f64
        )?;
        if self.system > 0 {
            write!(
                f,
                "; Go's runtime has {} of them ({:.3} s), which are left out",
                self.system_number(),
                self.system_ns as f64 / 1e9
            )?;
        }
        for loss in self.losses() {
            write!(f, "; {loss}")?;
        }
        Ok(())
    }
}

impl Counts {
    /// Returns the number of the runtime's own goroutines, on average.
    #[must_use]
    pub fn system_number(&self) -> u64 {
        let samples = self.samples.max(1);
        (self.system + samples / 2) / samples
    }

    /// Describes what the samples lack.
    #[must_use]
    pub fn losses(&self) -> Vec<String> {
        let counts = [
            (
                self.changed,
                "changed while they were read and have no stack",
            ),
            (self.invalid, "were not valid and are left out"),
            (self.beyond, "exceeded the capacity and are left out"),
            (self.unread, "samples could not be read"),
            (
                u64::from(self.has_ended),
                "process ended before the window did",
            ),
        ];
        let lost = counts.into_iter().filter(|(count, _)| *count > 0);
        lost.map(|(count, text)| format!("{count} {text}"))
            .collect()
    }
}

#[derive(Clone, Copy, Default)]
struct Sum {
    ns: u64,
    samples: u64,
}

/// Time of goroutines by stack, reason and creator.
#[derive(Default)]
pub(crate) struct Sums {
    rows: HashMap<Stopped, (Sum, Vec<Location>, Vec<Location>)>,
}

impl Sums {
    /// Adds `ns` for a goroutine; false if the capacity is exceeded. `locate` is called for a new
    /// stack, with its addresses and whether the first one is exact.
    pub(crate) fn add(
        &mut self,
        stopped: Stopped,
        ns: u64,
        mut locate: impl FnMut(&[u64], bool) -> Vec<Location>,
    ) -> bool {
        if !self.rows.contains_key(&stopped) {
            if self.rows.len() >= MAX_STACKS {
                return false;
            }
            let chain = &stopped.chain;
            let stack = locate(&chain.addresses, chain.is_new);
            let creator = if stopped.creator == 0 {
                Vec::new()
            } else {
                locate(&[stopped.creator], false)
            };
            self.rows
                .insert(stopped.clone(), (Sum::default(), stack, creator));
        }
        if let Some((sum, ..)) = self.rows.get_mut(&stopped) {
            sum.ns = sum.ns.saturating_add(ns);
            sum.samples += 1;
        }
        true
    }

    /// Names all stacks.
    pub(crate) fn finish(
        self,
        symbolizer: &mut Symbolizer,
        reasons: &[String],
        counts: Counts,
    ) -> Account {
        let rows = self.rows.values();
        let located = rows.flat_map(|(_, stack, creator)| stack.iter().chain(creator).copied());
        symbolizer.resolve(located);
        let names = |located: &[Location]| -> Vec<String> {
            let frames = symbolizer.frames(located).into_iter();
            frames.map(|frame| frame.name.to_string()).collect()
        };
        let mut account = Account {
            counts,
            lines: Vec::new(),
        };
        for (stopped, (sum, stack, creator)) in &self.rows {
            let frames = names(stack);
            if stopped.chain.is_whole && is_of_runtime(&frames) {
                account.counts.system_ns += sum.ns;
                account.counts.system += sum.samples;
                continue;
            }
            let (state, reason) = match stopped.condition {
                Condition::Waiting(reason) => {
                    let reason = reasons.get(usize::from(reason));
                    // The runtime gives no reason for some of its own waits.
                    let reason = reason.filter(|reason| !reason.is_empty());
                    (State::Blocked, reason.cloned())
                }
                Condition::Runnable => (State::Runnable, None),
            };
            account.lines.push(Line {
                frames,
                is_whole: stopped.chain.is_whole,
                state,
                reason,
                creator: names(creator).pop(),
                sum: *sum,
            });
        }
        account.lines.sort_by(|left, right| {
            let key = |line: &Line| (line.frames.clone(), line.reason.clone());
            key(left).cmp(&key(right))
        });
        account
    }
}

/// Returns whether a goroutine with this stack is the runtime's own, by the rule of
/// `runtime.isSystemGoroutine`.
fn is_of_runtime(frames: &[String]) -> bool {
    let Some(root) = frames
        .first()
        .and_then(|root| root.strip_prefix("runtime."))
    else {
        return false;
    };
    match root {
        "main" | "corostart" | "handleAsyncEvent" => false,
        // These call functions of the program.
        "runfinq" | "runFinalizers" | "runCleanups" => {
            frames.iter().all(|frame| frame.starts_with("runtime."))
        }
        _ => true,
    }
}

/// Time of goroutines with one stack, reason and creator.
pub struct Line {
    /// Names of functions, root first; empty if the stack is missing.
    pub frames: Vec<String>,
    /// True if the outermost function is known.
    pub is_whole: bool,
    /// Blocked or runnable.
    pub state: State,
    /// Reason as Go states it; `None` if the goroutine is runnable or Go states none.
    pub reason: Option<String>,
    /// Function that created the goroutine.
    pub creator: Option<String>,
    sum: Sum,
}

impl Line {
    /// Returns the time in ns.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.sum.ns
    }
}

/// Time of the goroutines of one process in one window.
pub struct Account {
    /// Counts of the samples.
    pub counts: Counts,
    /// Times, without those of the runtime's own goroutines.
    pub lines: Vec<Line>,
}

impl Account {
    /// Adds the account to a profile, as samples of a program of this name. A stack ends in the
    /// reason of the wait, in brackets.
    pub fn add_to(&self, profile: &mut Profile, program: &str) {
        let comm = profile.names.text(program);
        for line in &self.lines {
            let mut user = StackId::EMPTY;
            let marked = if line.frames.is_empty() {
                Some(marker::MISSED_USER)
            } else {
                Some(marker::TRUNCATED).filter(|_| !line.is_whole)
            };
            if let Some(name) = marked {
                let frame = profile.frame(name, FrameKind::Marker);
                user = profile.stacks.called(user, frame);
            }
            for name in &line.frames {
                let frame = profile.frame(name, FrameKind::User);
                user = profile.stacks.called(user, frame);
            }
            let mut labels = Vec::new();
            let mut label = |profile: &mut Profile, key: &str, value: &str| {
                let (key, value) = (profile.names.text(key), profile.names.text(value));
                labels.push(Label { key, value });
            };
            if let Some(reason) = &line.reason {
                let frame = profile.frame(&format!("[{reason}]"), FrameKind::Marker);
                user = profile.stacks.called(user, frame);
                label(profile, "goroutine waits for", reason);
            }
            if let Some(creator) = &line.creator {
                label(profile, "goroutine created by", creator);
            }
            let labels: Labels = labels.into();
            let stack = Stack {
                user,
                kernel: StackId::EMPTY,
            };
            let sample = Sample {
                state: Some(line.state),
                labels: (!labels.is_empty()).then(|| profile.labels.id(labels)),
                ..Sample::new(comm, None, stack)
            };
            let weight = Weight {
                value: line.sum.ns,
                events: line.sum.samples,
                ..Weight::default()
            };
            profile.add(sample, weight);
        }
    }
}
