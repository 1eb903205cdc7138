//! From what was counted to a profile of named stacks, and what it is worth.

use std::collections::BTreeSet;
use std::fmt::Write;

use bpf::types::{Losses as Lost, Tally};
use profile::{
    Bursts, Losses, Name, Profile, Reason, Sample, State, ThreadId, Unit, Waker, Weight, Why,
};

use crate::Collected;
use crate::counts::Settled;
use crate::draft::Draft;
use crate::left_out::{LeftOut, lost_in_words};
use crate::reasons::{self, Place, Reasons};
use crate::session::accounts::Account;
use crate::stacks::{NamedStack, Quality, Walks};
use crate::wakers::{NamedWaker, Seen};

/// A profile, and what is missing from it.
pub struct Named {
    /// What was measured, and what was not.
    pub profile: Profile,
    walks: Walks,
    missed_wakers: u64,
    notes: Vec<String>,
    left_out: LeftOut,
    /// Counts of what found no capacity in the kernel's buffers.
    lost: Lost,
    /// How the Python part of stacks ended, if there was one.
    python: Vec<String>,
    unnamed: symbolize::Losses,
    sent: usize,
    drains: u64,
}

/// Whether the profile says who ended each wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakersShown {
    /// It does not.
    No,
    /// Of waits for locks and the like, where that was noted, beside the reason.
    WithReasons,
    /// Wakers with these stacks.
    Yes {
        /// Kernel stacks, too.
        kernel: bool,
    },
}

impl Collected {
    /// Names every stack that was counted. `weigh` says what a tally means: what it
    /// weighs in each state; weights of 0 are left out.
    pub fn name(
        mut self,
        unit: Unit,
        shown: WakersShown,
        weigh: impl Fn(&Tally) -> Vec<(Option<State>, Weight)>,
    ) -> Named {
        let mut worth = Worth {
            losses: Losses {
                events: self.lost.counts + self.lost.clocks + self.lost.switches,
                threads: self.lost.thread_ends + self.lost.children,
                ..Losses::default()
            },
            ..Worth::default()
        };
        let Settled { sums, comms } = self.settled();
        let blocked = sums.iter().filter(|(_, tally)| tally.blocked > 0);
        (self.stacks).look_up_sleeps(blocked.map(|(key, _)| key.kernel));
        let counted = sums.keys().flat_map(|key| [key.user, key.kernel]);
        self.stacks.resolve(counted.chain(self.wakers.stacks()));
        self.objects.resolve(&mut self.stacks.symbolizer);

        let mut draft = Draft::new(unit, self.stacks.detail());
        let mut reasons = Reasons::new(
            self.accounts
                .iter()
                .map(|account| (account.id(), profile::text::comm(account.comm()))),
        );
        // Where there are millions, the sums go as the samples come.
        let mut sums = sums.into_rows();
        sums.reverse();
        while let Some((key, tally)) = sums.pop() {
            if sums.len() < sums.capacity() / 2 {
                sums.shrink_to_fit();
            }
            let thread = key.thread;
            let named = self.stacks.named(key.user, key.kernel, &mut draft);
            worth.judge(&named, tally.events);
            let wakers = match shown {
                WakersShown::No | WakersShown::WithReasons => Box::default(),
                WakersShown::Yes { kernel } => self.name_wakers(
                    key.waker,
                    thread,
                    kernel,
                    tally.events,
                    &mut draft,
                    &mut worth,
                ),
            };
            let ended_by = match shown {
                WakersShown::WithReasons => self.ended_by(key.waker, thread, &mut draft),
                _ => None,
            };
            let comm = draft.comm(&comms[key.comm]);
            let why = (tally.blocked > 0).then(|| {
                let profile = &mut draft.profile;
                let sleep = || self.stacks.sleep(key.kernel);
                let place = Place {
                    stack: named.stack,
                    kernel: key.kernel,
                    object: key.object,
                    objects: &self.objects,
                    thread,
                    comm,
                    end: key.end,
                };
                let why = reasons.why(profile, &place, sleep, tally.events)?;
                let is_told = matches!(
                    why.reason,
                    Reason::Lock | Reason::Condition | Reason::Unknown
                );
                let ended_by = ended_by.filter(|_| is_told);
                Some(Why { ended_by, ..why })
            });
            let delay = reasons::of_delay(key.end);
            let sample = Sample {
                comm,
                thread: Some(thread),
                stack: named.stack,
                state: None,
                wakers: (!wakers.is_empty()).then(|| draft.profile.wakers.id(wakers)),
                labels: None,
            };
            for (state, weight) in weigh(&tally) {
                let why = match state {
                    Some(State::Runnable) => delay,
                    _ => why.flatten().or(delay),
                };
                let labels = draft.profile.labels_of(why, key.period.is_some());
                let weight = match key.period {
                    Some(period) => weight.of_sampled(period),
                    None => weight,
                };
                if weight.value > 0 {
                    let sample = Sample {
                        state,
                        labels,
                        ..sample
                    };
                    draft.profile.add(sample, weight);
                }
            }
        }
        reasons.judge_idleness(&mut draft.profile);
        let kernel_threads: BTreeSet<u32> = (self.accounts.iter())
            .filter_map(Account::kernel_thread)
            .collect();
        for account in std::mem::take(&mut self.accounts) {
            let thread = account.named(&mut draft);
            draft.profile.threads.push(thread);
        }
        let threads = draft.profile.threads.iter().map(|thread| thread.id.pid);
        let samples = draft.profile.samples.keys();
        let pids = samples.filter_map(|sample| Some(sample.thread?.pid));
        let pids: BTreeSet<u32> = threads.chain(pids).filter(|pid| *pid != 0).collect();
        draft.profile.processes = self.stacks.processes(&pids, &kernel_threads);
        draft.profile.meta.bursts = self.bursts(&draft.profile, weigh);
        let unnamed = self.stacks.losses();
        draft.profile.losses = worth.losses;
        draft.profile.walk_ends = worth.walks.ends();
        Named {
            profile: draft.profile,
            walks: worth.walks,
            missed_wakers: worth.missed_wakers,
            left_out: LeftOut {
                objects: self.objects.refused(),
                processes: self.stacks.undescribed(),
                ..self.left_out
            },
            lost: self.lost,
            notes: reasons.note().into_iter().chain(self.notes).collect(),
            python: self.stacks.python_notes(),
            unnamed,
            sent: self.stacks.count(),
            drains: self.drains,
        }
    }

    /// How the time in each state varied from one part of the window to the next.
    fn bursts(
        &self,
        profile: &Profile,
        weigh: impl Fn(&Tally) -> Vec<(Option<State>, Weight)>,
    ) -> Vec<Bursts> {
        let states = weigh(&Tally::default()).into_iter().enumerate();
        let of_each = states.filter_map(|(at, (state, _))| {
            let parts = self.parts.iter();
            let parts = parts.map(|(length, tally)| (*length, weigh(tally)[at].1.value));
            let open = self.open.iter().map(|tally| weigh(tally)[at].1);
            Bursts::of(
                state,
                profile,
                &parts.collect::<Vec<_>>(),
                &open.collect::<Vec<_>>(),
            )
        });
        of_each.collect()
    }

    /// In words who ended a wait, and where it was; `None` if nobody saw.
    fn ended_by(&self, id: u64, sleeper: ThreadId, draft: &mut Draft) -> Option<Name> {
        let named = self.wakers.named(id, sleeper, true, &self.stacks, draft);
        let NamedWaker { waker, seen } = named.first()?;
        let profile = &mut draft.profile;
        let is_seen = matches!(seen, Seen::At(stack) if stack.quality != Quality::Missing);
        let told = (is_seen && waker.thread.is_some()).then(|| profile.told_of_waker(waker))?;
        Some(profile.names.text(&told))
    }

    fn name_wakers(
        &self,
        id: u64,
        sleeper: ThreadId,
        kernel: bool,
        events: u64,
        draft: &mut Draft,
        worth: &mut Worth,
    ) -> Box<[Waker]> {
        let named = self.wakers.named(id, sleeper, kernel, &self.stacks, draft);
        let judged = named.into_iter().map(|named| {
            match &named.seen {
                Seen::At(stack) => worth.judge(stack, events),
                Seen::Missed => worth.missed_wakers += events,
                Seen::Nobody => {}
            }
            named.waker
        });
        judged.collect()
    }
}

/// What the named stacks are worth.
#[derive(Default)]
struct Worth {
    losses: Losses,
    walks: Walks,
    missed_wakers: u64,
}

impl Worth {
    /// Takes in a stack that `events` intervals or samples have.
    fn judge(&mut self, stack: &NamedStack, events: u64) {
        if let Some(outcome) = stack.outcome {
            self.walks.add(outcome, stack.last_module.as_ref(), events);
        }
        match stack.quality {
            Quality::Missing => self.losses.stacks += events,
            Quality::Truncated => self.losses.incomplete_user += events,
            Quality::Whole => {}
        }
    }
}

impl Named {
    /// Returns lines that say what the data are worth; with `verbose` also why.
    #[must_use]
    pub fn remarks(&self, verbose: bool) -> Vec<String> {
        let mut lines = vec![self.summary()];
        if self.walks.any() {
            lines.push(self.walks.to_string());
        }
        lines.extend_from_slice(&self.python);
        if verbose {
            lines.extend(self.walks.at_fault());
            lines.extend_from_slice(&self.notes);
            lines.push(format!(
                "{} different user and kernel stacks were captured; the counts were drained {} times",
                self.sent, self.drains
            ));
            lines.extend_from_slice(&self.unnamed.notes);
        }
        lines
    }

    fn summary(&self) -> String {
        let Losses {
            events,
            stacks,
            threads,
            incomplete_user,
        } = self.profile.losses;
        let mut text = format!(
            "{} stacks; lost: {events} events, {stacks} stacks, {threads} threads; {incomplete_user} cut short",
            self.profile.samples.len()
        );
        // Writing to a String does not fail.
        let mut add = |count: u64, what: &str| {
            if count > 0 {
                let _ = write!(text, "; {count} {what}");
            }
        };
        add(self.missed_wakers, "wake-ups were not seen");
        add(
            self.unnamed.processes,
            "processes ended before their mappings could be read",
        );
        add(
            process::count_unanswered() as u64,
            "processes' memory did not answer in time and was not read",
        );
        add(
            self.unnamed.unopened_files,
            "mapped files could not be opened",
        );
        add(
            self.unnamed.crowded_files,
            "mapped files are more than may be open at once (raise the limit, `ulimit -Hn`)",
        );
        add(
            self.unnamed.crowded_processes,
            "processes have more executable mappings than are read: code in the rest has no name",
        );
        add(self.unnamed.unread_files, "files had no readable symbols");
        add(
            self.unnamed.costly_files,
            "files take too much work to name all that is in them",
        );
        add(
            self.unnamed.interpreted,
            "frames of Python functions found no room for their names",
        );
        text.push_str(&lost_in_words(&self.lost));
        text.push_str(&self.left_out.in_words());
        if self.unnamed.kernel_hidden {
            text.push_str("; kernel symbols are hidden (kernel.kptr_restrict)");
        }
        text
    }
}

#[cfg(test)]
mod tests;
