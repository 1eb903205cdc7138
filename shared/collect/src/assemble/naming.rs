//! From what was counted to a profile of named stacks, and what it is worth.

use std::collections::BTreeSet;

use bpf::types::{COMM_LENGTH, Tally};
use profile::{
    Bursts, EndedBy, Id, Losses, Profile, Reason, Sample, Stack, State, Table, Thread, ThreadId,
    Unit, Wait, Wakers, Weight,
};

use waits::{Place, Reasons, delay_wait};

use super::diagnostics::Diagnostics;
use super::draft::Draft;
use super::stacks::{NamedStack, Quality};
use super::wakers::{NamedWaker, Seen};
use super::walks::Walks;
use crate::record::sums::{self, Settled};
use crate::record::{Account, Captured, Collected, LeftOut};

/// A profile, and what it is worth.
pub struct Named {
    /// What was measured.
    pub profile: Profile,
    /// What was left out, lost or not named.
    pub diagnostics: Diagnostics,
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

/// A profile that is being drawn up of sums, and what its stacks are worth.
struct Naming {
    draft: Draft,
    reasons: Reasons<Captured>,
    worth: Worth,
    shown: WakersShown,
    /// Names of threads, as the kernel keeps them, by the numbers that sums have for them.
    comms: Table<[u8; COMM_LENGTH]>,
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
        let Settled { sums, comms } = self.resolve();
        let threads = self.accounts.iter();
        let threads = threads.map(|account| (account.id(), profile::text::comm(account.comm())));
        let mut naming = Naming {
            draft: Draft::new(unit, self.stacks.detail()),
            reasons: Reasons::new(threads),
            worth: Worth::default(),
            shown,
            comms,
        };
        // Where there are millions, the sums go as the samples come.
        let mut sums = sums.into_rows();
        sums.reverse();
        while let Some((key, tally)) = sums.pop() {
            if sums.len() < sums.capacity() / 2 {
                sums.shrink_to_fit();
            }
            self.add_samples(&mut naming, &key, &tally, &weigh);
        }
        let Naming {
            mut draft,
            reasons,
            worth,
            ..
        } = naming;
        reasons.judge_idleness(&mut draft.profile);
        self.add_threads(&mut draft);
        draft.profile.meta.bursts = self.bursts(&draft.profile, weigh);
        draft.profile.losses = Losses {
            events: self.lost.counts + self.lost.clocks + self.lost.switches,
            threads: self.lost.thread_ends + self.lost.children,
            ..worth.losses
        };
        draft.profile.walk_ends = worth.walks.ends();
        let notes = reasons.note().into_iter();
        let left_out = LeftOut {
            objects: self.objects.refused(),
            processes: self.stacks.undescribed(),
            ..self.left_out
        };
        Named {
            profile: draft.profile,
            diagnostics: Diagnostics {
                events: worth.events,
                walk_ends: worth.walks.ends(),
                cut_short_in: worth.walks.cut_short_in(),
                missed_wakers: worth.missed_wakers,
                left_out: left_out.with_programs(&self.lost),
                languages: self.stacks.notes_of_languages(),
                unnamed: self.stacks.losses(),
                stacks_sent: self.stacks.count(),
                drains: self.drains,
                notes: notes.chain(self.notes).collect(),
            },
        }
    }

    /// Settles the sums, and finds names for all that they refer to.
    fn resolve(&mut self) -> Settled {
        let settled = self.settled();
        let sums = &settled.sums;
        let blocked = sums.iter().filter(|(_, tally)| tally.blocked > 0);
        (self.stacks).look_up_sleeps(blocked.map(|(key, _)| key.kernel));
        let counted = sums.keys().flat_map(|key| [key.user, key.kernel]);
        self.stacks.resolve(counted.chain(self.wakers.stacks()));
        self.objects.resolve(&mut self.stacks.symbolizer);
        settled
    }

    /// Adds the samples of a sum to the profile.
    fn add_samples(
        &self,
        naming: &mut Naming,
        key: &sums::Key,
        tally: &Tally,
        weigh: impl Fn(&Tally) -> Vec<(Option<State>, Weight)>,
    ) {
        let Naming { draft, worth, .. } = naming;
        let named = self.stacks.named(key.user, key.kernel, draft);
        worth.events += tally.events;
        worth.judge(&named, tally.events);
        let wakers = self.name_wakers(naming, key, tally.events);
        let wait = (tally.blocked > 0).then(|| self.wait(naming, key, named.stack, tally.events));
        let delay = delay_wait(key.end);
        let draft = &mut naming.draft;
        let comm = draft.comm(&naming.comms[key.comm]);
        for (state, weight) in weigh(tally) {
            let wait = match state {
                Some(State::Runnable) => delay,
                _ => wait.flatten().or(delay),
            };
            let weight = match key.period {
                Some(period) => weight.as_sampled(period),
                None => weight,
            };
            let sample = Sample {
                state,
                wakers,
                wait: wait.map(|wait| draft.profile.waits.id(wait)),
                is_sampled: key.period.is_some(),
                ..Sample::new(comm, Some(key.thread), named.stack)
            };
            if weight.value > 0 {
                draft.profile.add(sample, weight);
            }
        }
    }

    /// Returns what the thread of a sum waited for, if a stack of the kernel was asked for.
    fn wait(
        &self,
        naming: &mut Naming,
        key: &sums::Key,
        stack: Stack,
        events: u64,
    ) -> Option<Wait> {
        let Naming {
            draft,
            reasons,
            shown,
            comms,
            ..
        } = naming;
        let place = Place {
            stack,
            kernel: key.kernel,
            object: key.object,
            objects: &self.objects,
            thread: key.thread,
            comm: draft.comm(&comms[key.comm]),
            end: key.end,
        };
        let sleep = || self.stacks.sleep(key.kernel);
        let wait = reasons.wait(&mut draft.profile, &place, sleep, events)?;
        let is_told = *shown == WakersShown::WithReasons
            && matches!(
                wait.kind.reason,
                Reason::Lock | Reason::Condition | Reason::Unknown
            );
        let ended_by = is_told.then(|| self.ended_by(key.waker, key.thread, draft));
        Some(Wait {
            ended_by: ended_by.flatten(),
            ..wait
        })
    }

    /// Adds the accounts of threads, and the processes of these and of samples.
    fn add_threads(&mut self, draft: &mut Draft) {
        let kernel_threads: BTreeSet<u32> = (self.accounts.iter())
            .filter_map(Account::kernel_thread)
            .collect();
        for account in std::mem::take(&mut self.accounts) {
            let comm = draft.comm(account.comm());
            draft.profile.threads.push(Thread {
                id: account.id(),
                comm,
                clock: account.clock,
            });
        }
        let threads = draft.profile.threads.iter().map(|thread| thread.id.pid);
        let samples = draft.profile.samples.keys();
        let pids = samples.filter_map(|sample| Some(sample.thread?.pid));
        let pids: BTreeSet<u32> = threads.chain(pids).filter(|pid| *pid != 0).collect();
        draft.profile.processes = self.stacks.processes(&pids, &kernel_threads);
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
            Bursts::estimate(
                state,
                profile,
                &parts.collect::<Vec<_>>(),
                &open.collect::<Vec<_>>(),
            )
        });
        of_each.collect()
    }

    /// Returns who ended a wait, with the waker's stack; `None` if nobody saw.
    fn ended_by(&self, id: u64, sleeper: ThreadId, draft: &mut Draft) -> Option<EndedBy> {
        let named = self.wakers.named(id, sleeper, true, &self.stacks, draft);
        let NamedWaker { waker, seen } = named.first()?;
        let is_seen = matches!(seen, Seen::At(stack) if stack.quality != Quality::Missing);
        let is_told = is_seen && waker.thread.is_some();
        is_told.then(|| EndedBy::Wakers(draft.profile.wakers.id([*waker].into())))
    }

    /// Returns the wakers of a sum that are drawn with its stack, if there are any.
    fn name_wakers(&self, naming: &mut Naming, key: &sums::Key, events: u64) -> Option<Id<Wakers>> {
        let WakersShown::Yes { kernel } = naming.shown else {
            return None;
        };
        let Naming { draft, worth, .. } = naming;
        let named = self
            .wakers
            .named(key.waker, key.thread, kernel, &self.stacks, draft);
        let judged = named.into_iter().map(|named| {
            match &named.seen {
                Seen::At(stack) => worth.judge(stack, events),
                Seen::Missed => worth.missed_wakers += events,
                Seen::Nobody => {}
            }
            named.waker
        });
        let wakers: Wakers = judged.collect();
        (!wakers.is_empty()).then(|| draft.profile.wakers.id(wakers))
    }
}

/// What the named stacks are worth.
#[derive(Default)]
struct Worth {
    /// Intervals or samples.
    events: u64,
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

#[cfg(test)]
mod tests;
