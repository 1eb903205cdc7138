//! From what was counted to a profile of named stacks, and what it is worth.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use bpf::types::{StackKey, Tally};
use profile::{Losses, Profile, Stack, State, ThreadId, Unit, Weight};

use crate::Collected;
use crate::comms::Comms;
use crate::stacks::{NamedStack, Quality};
use crate::walks::Walks;

/// A profile, and what is missing from it.
pub struct Named {
    /// What was measured.
    pub profile: Profile,
    /// What was not.
    pub losses: Losses,
    walks: Walks,
    notes: Vec<String>,
    unnamed: symbolize::Losses,
    sent: usize,
    drains: u64,
}

impl Collected {
    /// Names every stack that was counted. `weigh` says what a tally means:
    /// what it weighs in each state; weights of 0 are left out.
    pub fn name(
        mut self,
        unit: Unit,
        weigh: impl Fn(&Tally) -> Vec<(Option<State>, Weight)>,
    ) -> Named {
        let mut losses = Losses {
            events: self.lost.counts + self.lost.clocks + self.lost.switches,
            threads: self.lost.thread_ends,
            ..Losses::default()
        };
        self.stacks
            .resolve(self.totals.keys().flat_map(|key| [key.user, key.kernel]));

        let mut walks = Walks::default();
        let mut comms = Comms::default();
        let mut stacks: HashMap<Stack, Weight> = HashMap::with_capacity(self.totals.len());
        for (
            StackKey {
                pid,
                tid,
                user,
                kernel,
                comm,
            },
            tally,
        ) in self.totals.drain()
        {
            let comm = comms.name(&comm);
            let NamedStack {
                frames,
                quality,
                outcome,
                last_module,
            } = self.stacks.named(user, kernel);
            if let Some(outcome) = outcome {
                walks.add(outcome, last_module.as_ref(), tally.events);
            }
            match quality {
                Quality::Missing => losses.stacks += tally.events,
                Quality::Truncated => losses.incomplete_user += tally.events,
                Quality::Whole => {}
            }
            for (state, weight) in weigh(&tally) {
                if weight.value == 0 {
                    continue;
                }
                let stack = Stack {
                    comm: Arc::clone(&comm),
                    thread: Some(ThreadId { pid, tid }),
                    frames: Arc::clone(&frames),
                    state,
                    wakers: Vec::new(),
                };
                let sum = stacks.entry(stack).or_default();
                sum.value += weight.value;
                sum.events += weight.events;
                sum.longest = sum.longest.max(weight.longest);
            }
        }
        let unnamed = self.stacks.losses();
        Named {
            profile: Profile {
                unit,
                stacks,
                threads: Vec::new(),
            },
            losses,
            walks,
            notes: self.notes,
            unnamed,
            sent: self.stacks.count(),
            drains: self.drains,
        }
    }
}

impl Named {
    /// Says on stderr what the data are worth; with `verbose` also why.
    pub fn report(&self, tool: &str, verbose: bool) {
        eprintln!("{tool}: {}", self.summary());
        if self.walks.any() {
            eprintln!("{tool}: {}", self.walks);
        }
        if verbose {
            for note in self.walks.at_fault().iter().chain(&self.notes) {
                eprintln!("{tool}: {note}");
            }
            eprintln!(
                "{tool}: {} user and kernel stacks were captured; the counts were drained {} times",
                self.sent, self.drains
            );
            for note in &self.unnamed.notes {
                eprintln!("{tool}: {note}");
            }
        }
    }

    fn summary(&self) -> String {
        let Losses {
            events,
            stacks,
            threads,
            incomplete_user,
        } = self.losses;
        let mut text = format!(
            "{} stacks; lost: {events} events, {stacks} stacks, {threads} threads; {incomplete_user} cut short",
            self.profile.stacks.len()
        );
        // Writing to a String does not fail.
        let mut add = |count: u64, what: &str| {
            if count > 0 {
                let _ = write!(text, "; {count} {what}");
            }
        };
        add(
            self.unnamed.processes,
            "processes ended before their mappings could be read",
        );
        add(
            self.unnamed.unopened_files,
            "mapped files could not be opened",
        );
        add(self.unnamed.unread_files, "files had no readable symbols");
        if self.unnamed.kernel_hidden {
            text.push_str("; kernel symbols are hidden (kernel.kptr_restrict)");
        }
        text
    }
}
