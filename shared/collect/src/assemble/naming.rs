//! Assembles a profile of named stacks, with diagnostics, from counts.

use std::collections::{BTreeSet, HashMap};
use std::iter;

use bpf::types::Tally;
use capture::KeySamples;
use profile::{
    Bursts, EndedBy, Id, Losses, Profile, Reason, RowMap, Sample, Stack, State, Table, Text,
    Thread, ThreadId, Unit, Wait, Wakers, Weight, Window,
};

use waits::{Place, Reasons, delay_wait};

use super::diagnostics::Diagnostics;
use super::draft::Draft;
use super::stacks::{NamedStack, Quality};
use super::timeline::{self, TimedSamples};
use super::wakers::{NamedWaker, Seen};
use super::walks::Walks;
use crate::record::sums::{self, Settled};
use crate::record::{Account, Captured, Collected, KernelName, LeftOut, Stores};

/// Profile, and the diagnostics of its run.
pub struct Named {
    /// Profile of the window.
    pub profile: Profile,
    /// Samples of the keys to which streamed rows of the timeline refer, by the keys' numbers.
    pub timeline_keys: Vec<KeySamples>,
    /// Counts of data that the tool left out, lost or could not name.
    pub diagnostics: Diagnostics,
}

/// Choice of the wakers in the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakersShown {
    /// No wakers.
    No,
    /// Wakers of waits for locks and conditions, next to the reason, if programs recorded them.
    WithReasons {
        /// True for the wakers of all waits, interrupts too.
        of_all_waits: bool,
    },
    /// Wakers with their stacks.
    Yes {
        /// True if wakers also have kernel stacks.
        kernel: bool,
    },
}

/// State during the assembly of a profile.
struct Naming {
    draft: Draft,
    reasons: Reasons<Captured>,
    worth: Worth,
    shown: WakersShown,
    /// Kernel's names of threads, by their IDs in sums.
    comms: Table<KernelName>,
    /// Samples to which rows of the timeline refer.
    timed: TimedSamples,
}

impl Collected {
    /// Makes a profile of the `window` with a name for every counted stack. `weigh` returns the
    /// weight of a tally in each state. Weights of 0 are left out.
    pub fn name(
        mut self,
        unit: Unit,
        shown: WakersShown,
        window: Window,
        weigh: impl Fn(&Tally) -> Vec<(Option<State>, Weight)>,
    ) -> Named {
        let Settled { sums, comms } = self.settled();
        let of_wakers: Vec<Captured> = self.stores.wakers.stacks().collect();
        self.stores.stacks.symbolizer.wait_for_debug_files();
        self.stores.resolve(&sums, of_wakers);
        self.stores.stacks.drop_ids();
        let keys = self.timeline.iter().flat_map(|it| it.rows.keys.settled());
        let timed = TimedSamples::new(keys);
        let threads = self.accounts.iter();
        let names = &self.stores.names;
        let threads = threads.map(|account| {
            let name = names.printed(account.id(), account.comm());
            (account.id(), name)
        });
        let mut naming = (self.stores).begin_naming(unit, shown, comms, threads, timed);
        // A run can have millions of sums. Memory of sums is freed while the samples grow.
        let mut sums = sums.into_rows();
        sums.reverse();
        while let Some((key, tally)) = sums.pop() {
            if sums.len() < sums.capacity() / 2 {
                sums.shrink_to_fit();
            }
            (self.stores).add_samples(&mut naming, &key, &tally, &weigh);
        }
        let Naming {
            mut draft,
            reasons,
            worth,
            timed,
            ..
        } = naming;
        self.add_threads(&mut draft);
        draft.profile.meta.bursts = self.bursts(&draft.profile, weigh);
        draft.profile.losses = Losses {
            events: self.lost.counts + self.lost.clocks + self.lost.switches,
            threads: self.lost.thread_ends + self.lost.children,
            ..worth.losses
        };
        let timeline = self.timeline.take();
        let timeline_keys = timeline
            .map(|rows| timeline::add(&mut draft, rows, &timed, window, &self.stores.names));
        let mut timeline_keys = timeline_keys.unwrap_or_default();
        if let Some(numbers) = reasons.judge_idleness(&mut draft.profile) {
            timeline::renumber(&mut timeline_keys, &numbers);
        }
        draft.profile.walk_ends = worth.walks.ends();
        let notes = reasons.note().into_iter();
        let left_out = LeftOut {
            objects: self.stores.objects.refused(),
            processes: self.stores.stacks.undescribed(),
            ..self.left_out
        };
        Named {
            profile: draft.profile,
            timeline_keys,
            diagnostics: Diagnostics {
                events: worth.events,
                walk_ends: worth.walks.ends(),
                cut_short_in: worth.walks.cut_short_in(),
                missed_wakers: worth.missed_wakers,
                left_out: left_out.with_programs(&self.lost),
                languages: self.stores.stacks.language_notes(),
                unnamed: self.stores.stacks.losses(),
                stacks_sent: self.stores.stacks.count(),
                drains: self.drains,
                notes: notes.chain(self.notes).collect(),
            },
        }
    }

    /// Adds the accounts of threads, and the processes of the accounts and samples.
    fn add_threads(&mut self, draft: &mut Draft) {
        let kernel_threads: BTreeSet<u32> = (self.accounts.iter())
            .filter_map(Account::kernel_thread)
            .collect();
        for account in std::mem::take(&mut self.accounts) {
            let name = KernelName {
                comm: *account.comm(),
                thread: Some(account.id()),
            };
            let comm = draft.thread_name(&self.stores.names, &name);
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
        draft.profile.processes = self.stores.stacks.processes(&pids, &kernel_threads);
    }

    /// Returns how much the time in each state varied between the parts of the window.
    fn bursts(
        &self,
        profile: &Profile,
        weigh: impl Fn(&Tally) -> Vec<(Option<State>, Weight)>,
    ) -> Vec<Bursts> {
        let states = weigh(&Tally::default()).into_iter().enumerate();
        let bursts = states.filter_map(|(at, (state, _))| {
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
        bursts.collect()
    }
}

impl Stores {
    /// Begins to name the sums whose thread names are in `comms`.
    fn begin_naming(
        &self,
        unit: Unit,
        shown: WakersShown,
        comms: Table<KernelName>,
        threads: impl Iterator<Item = (ThreadId, Text)>,
        timed: TimedSamples,
    ) -> Naming {
        Naming {
            draft: Draft::new(unit, self.stacks.detail()),
            reasons: Reasons::new(threads),
            worth: Worth::default(),
            shown,
            comms,
            timed,
        }
    }

    /// Returns the wait of each of these sums, which have settled. Programs may still run.
    pub(crate) fn find_waits(
        &mut self,
        sums: &RowMap<sums::Key, Tally>,
        comms: &mut Table<KernelName>,
    ) -> HashMap<sums::Key, Wait> {
        self.resolve(sums, Vec::new());
        let timed = TimedSamples::new(sums.keys().copied());
        let (unit, shown) = (Unit::Nanoseconds, WakersShown::No);
        let mut naming =
            self.begin_naming(unit, shown, std::mem::take(comms), iter::empty(), timed);
        let weigh = |tally: &Tally| {
            let weight = Weight {
                value: tally.blocked,
                events: tally.events,
                ..Weight::default()
            };
            vec![(Some(State::Blocked), weight)]
        };
        for (key, tally) in sums.iter() {
            self.add_samples(&mut naming, key, tally, weigh);
        }
        *comms = naming.comms;
        let profile = &mut naming.draft.profile;
        let numbers = naming.reasons.judge_idleness(profile);
        let waits = sums.keys().filter_map(|key| {
            let sample = naming.timed.blocked(key)?;
            let sample = match &numbers {
                Some(numbers) => (*numbers.get(sample.index())?)?,
                None => sample,
            };
            let (sample, _) = profile.samples.row(sample)?;
            Some((*key, *profile.wait(sample)?))
        });
        waits.collect()
    }

    /// Resolves names for the stacks and resources of sums, and for other stacks.
    fn resolve(&mut self, sums: &RowMap<sums::Key, Tally>, others: Vec<Captured>) {
        let blocked = sums.iter().filter(|(_, tally)| tally.blocked > 0);
        (self.stacks).look_up_sleeps(blocked.map(|(key, _)| key.kernel));
        let counted = sums.keys().flat_map(|key| [key.user, key.kernel]);
        self.stacks.resolve(counted.chain(others));
        self.objects.resolve(&mut self.stacks.symbolizer);
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
        let comm = draft.thread_name(&self.names, &naming.comms[key.comm]);
        for (state, weight) in weigh(tally) {
            let wait = match state {
                Some(State::Runnable) => delay,
                _ => wait.flatten().or(delay),
            };
            let weight = match key.period {
                Some(period) => weight.as_sampled(period),
                None => weight,
            };
            if weight.value == 0 {
                continue;
            }
            let sample = Sample {
                state,
                wakers,
                wait: wait.map(|wait| draft.profile.waits.id(wait)),
                is_sampled: key.period.is_some(),
                ..Sample::new(comm, Some(key.thread), named.stack)
            };
            let sample = draft.profile.add(sample, weight);
            naming.timed.add(key, state, sample);
        }
    }

    /// Returns the wait of a sum's thread; `None` if no kernel stacks are captured.
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
            comm: draft.thread_name(&self.names, &comms[key.comm]),
            end: key.end,
        };
        let sleep = || self.stacks.sleep(key.kernel);
        let wait = reasons.wait(&mut draft.profile, &place, sleep, events)?;
        let of_all_waits = match *shown {
            WakersShown::WithReasons { of_all_waits } => Some(of_all_waits),
            WakersShown::No | WakersShown::Yes { .. } => None,
        };
        let is_shown = of_all_waits.filter(|of_all_waits| {
            let is_mutual = matches!(
                wait.kind.reason,
                Reason::Lock | Reason::Condition | Reason::Unknown
            );
            *of_all_waits || is_mutual
        });
        let ended_by =
            is_shown.map(|of_all_waits| self.ended_by(key.waker, key.thread, of_all_waits, draft));
        Some(Wait {
            ended_by: ended_by.flatten(),
            ..wait
        })
    }

    /// Returns the waker that ended a wait, with its stack; `None` if no program saw the waker, or
    /// if it was an interrupt and `with_interrupts` is false.
    fn ended_by(
        &self,
        id: u64,
        sleeper: ThreadId,
        with_interrupts: bool,
        draft: &mut Draft,
    ) -> Option<EndedBy> {
        let named = (self.wakers).named(id, sleeper, true, (&self.stacks, &self.names), draft);
        let NamedWaker { waker, seen } = named.first()?;
        let is_seen = matches!(seen, Seen::At(stack) if stack.quality != Quality::Missing);
        let is_known = is_seen && (with_interrupts || waker.thread.is_some());
        is_known.then(|| EndedBy::Wakers(draft.profile.wakers.id([*waker].into())))
    }

    /// Returns the wakers that are drawn with the stack of a sum; `None` if there are none.
    fn name_wakers(&self, naming: &mut Naming, key: &sums::Key, events: u64) -> Option<Id<Wakers>> {
        let WakersShown::Yes { kernel } = naming.shown else {
            return None;
        };
        let Naming { draft, worth, .. } = naming;
        let named = self.wakers.named(
            key.waker,
            key.thread,
            kernel,
            (&self.stacks, &self.names),
            draft,
        );
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

/// Quality of the stacks named so far.
#[derive(Default)]
struct Worth {
    /// Number of intervals or samples.
    events: u64,
    losses: Losses,
    walks: Walks,
    missed_wakers: u64,
}

impl Worth {
    /// Adds the quality of a stack that `events` intervals or samples have.
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
