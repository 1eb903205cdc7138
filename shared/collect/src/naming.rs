//! From what was counted to a profile of named stacks, and what it is worth.

use std::collections::BTreeSet;
use std::fmt::Write;

use bpf::types::Tally;
use profile::{
    Bursts, Losses, Name, Profile, Reason, Sample, State, ThreadId, Unit, Waker, Weight, Why,
    marker,
};

use crate::Collected;
use crate::counts::Settled;
use crate::draft::Draft;
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
        let mut reasons = Reasons::new(self.accounts.iter().map(|account| {
            let name = profile::text::comm(account.comm());
            (account.id(), name)
        }));
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
            let delay = reasons::of_delay(&mut draft.profile, key.end);
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
            notes: (self.stacks.note().into_iter())
                .chain(reasons.note())
                .chain(self.notes)
                .collect(),
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
        let told = (is_seen && !marker::is_no_waker(&profile.names[waker.comm]))
            .then(|| profile.told_of_waker(waker))?;
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
    /// Says on stderr what the data are worth; with `verbose` also why.
    pub fn report(&self, verbose: bool) {
        let tool = &self.profile.meta.tool;
        eprintln!("{tool}: {}", self.summary());
        if self.walks.any() {
            eprintln!("{tool}: {}", self.walks);
        }
        for line in &self.python {
            eprintln!("{tool}: {line}");
        }
        if verbose {
            for note in self.walks.at_fault().iter().chain(&self.notes) {
                eprintln!("{tool}: {note}");
            }
            eprintln!(
                "{tool}: {} different user and kernel stacks were captured; the counts were drained {} times",
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use bpf::types::{
        STACK_MISSED, StackEvent, StackKey, WAKER_MISSED, WAKER_STILL_BLOCKED, WakerEvent,
    };

    use super::*;
    use crate::collector::tests::collected;

    fn named(losses: Losses, missed_wakers: u64, unnamed: symbolize::Losses) -> Named {
        let mut profile = Profile::new(Unit::Nanoseconds);
        profile.losses = losses;
        Named {
            profile,
            walks: Walks::default(),
            missed_wakers,
            notes: Vec::new(),
            python: Vec::new(),
            unnamed,
            sent: 0,
            drains: 0,
        }
    }

    #[test]
    fn what_is_missing_is_told_in_one_line() {
        let none = named(Losses::default(), 0, symbolize::Losses::default());
        assert_eq!(
            none.summary(),
            "0 stacks; lost: 0 events, 0 stacks, 0 threads; 0 cut short"
        );
        let losses = Losses {
            events: 1,
            stacks: 2,
            threads: 3,
            incomplete_user: 4,
        };
        let unnamed = symbolize::Losses {
            processes: 6,
            unopened_files: 7,
            unread_files: 8,
            kernel_hidden: true,
            ..symbolize::Losses::default()
        };
        assert_eq!(
            named(losses, 5, unnamed).summary(),
            "0 stacks; lost: 1 events, 2 stacks, 3 threads; 4 cut short; \
             5 wake-ups were not seen; \
             6 processes ended before their mappings could be read; \
             7 mapped files could not be opened; 8 files had no readable symbols; \
             kernel symbols are hidden (kernel.kptr_restrict)"
        );
    }

    /// What is counted of a thread that was blocked, in a stack that the kernel could not
    /// tell.
    fn blocked(collected: &mut Collected, waker: u64) {
        let key = StackKey {
            pid: 1,
            tid: 1,
            kernel: STACK_MISSED,
            waker,
            ..StackKey::default()
        };
        let tally = Tally {
            events: 3,
            blocked: 50,
            ..Tally::default()
        };
        collected.add(key, &tally);
    }

    /// Its time in the two states off the CPU.
    fn off_cpu(tally: &Tally) -> Vec<(Option<State>, Weight)> {
        let of = |state, value| {
            let weight = Weight {
                value,
                ..Weight::default()
            };
            (Some(state), weight)
        };
        vec![
            of(State::Blocked, tally.blocked),
            of(State::Runnable, tally.runnable),
        ]
    }

    /// Who ended its wait, by what is said of why it was blocked.
    fn ender(named: &Named) -> Option<String> {
        let profile = &named.profile;
        let sample = profile.samples.keys().next().unwrap();
        let ended_by = profile.why(sample).unwrap().ended_by;
        ended_by.map(|name| profile.names[name].to_string())
    }

    #[test]
    fn what_programs_lost_is_lost_to_the_profile() {
        let mut collected = collected();
        collected.lost = bpf::types::Losses {
            counts: 2,
            clocks: 3,
            switches: 4,
            thread_ends: 5,
            children: 6,
            ..collected.lost
        };
        let named = collected.name(Unit::Nanoseconds, WakersShown::No, off_cpu);
        let Losses {
            events, threads, ..
        } = named.profile.losses;
        assert_eq!((events, threads), (9, 11));
    }

    #[test]
    fn time_has_a_state_and_a_reason_where_it_is_blocked() {
        let mut collected = collected();
        blocked(&mut collected, 0);
        let runnable = Tally {
            events: 1,
            runnable: 7,
            ..Tally::default()
        };
        collected.add(StackKey::default(), &runnable);
        let profile = collected
            .name(Unit::Nanoseconds, WakersShown::No, off_cpu)
            .profile;
        let told: Vec<_> = profile
            .samples
            .iter()
            .map(|(sample, weight)| {
                let why = profile.why(sample).map(|why| why.reason);
                (sample.state, weight.value, why)
            })
            .collect();
        assert_eq!(
            told,
            [
                (Some(State::Blocked), 50, Some(Reason::Unknown)),
                (Some(State::Runnable), 7, None),
            ]
        );
    }

    /// Locks are in the scheduler's section, which the kernel leaves out of its stacks.
    #[test]
    fn a_lock_that_a_leaf_called_to_sleep_is_the_reason() {
        let list = std::fs::read_to_string("/proc/kallsyms").unwrap();
        let address_of = |wanted| {
            let mut lines = list.lines();
            let line = lines.find(|line| line.split(' ').nth(2) == Some(wanted))?;
            u64::from_str_radix(line.split(' ').next()?, 16).ok()
        };
        let from = address_of("kmem_cache_destroy").unwrap();
        let returns: Vec<u64> = (from + 5..from + 400).collect();
        let calls = loader::kernel_calls(&returns).unwrap(); // needs root
        let locks = ["mutex_lock", "mutex_lock_nested"].map(address_of);
        let is_lock = |called: &Option<u64>| called.is_some() && locks.contains(called);
        let at = calls.iter().position(is_lock).unwrap();
        let event = StackEvent {
            hash: 20,
            ..StackEvent::default()
        };
        let mut collected = collected();
        collected.stacks.add(&event, &[returns[at]]);
        let key = StackKey {
            kernel: event.hash,
            ..StackKey::default()
        };
        let tally = Tally {
            events: 1,
            blocked: 5,
            ..Tally::default()
        };
        collected.add(key, &tally);
        let profile = collected
            .name(Unit::Nanoseconds, WakersShown::No, off_cpu)
            .profile;
        let sample = profile.samples.keys().next().unwrap();
        let why = profile.why(sample).unwrap();
        assert_eq!(why.reason, Reason::KernelLock);
    }

    #[test]
    fn who_ended_a_wait_is_told_with_its_reason() {
        let ended = |shown, kernel| {
            let mut collected = collected();
            collected.wakers.add(WakerEvent {
                id: 30,
                pid: 1,
                tid: 2,
                kernel,
                comm: *b"writer\0\0\0\0\0\0\0\0\0\0",
                ..WakerEvent::default()
            });
            collected.wakers.settle(&collected.stacks, |_, _| false);
            blocked(&mut collected, 30);
            ender(&collected.name(Unit::Nanoseconds, shown, off_cpu))
        };
        assert_eq!(ended(WakersShown::No, 0), None);
        let ender = ended(WakersShown::WithReasons, 0).unwrap();
        assert!(ender.starts_with("writer in "), "{ender}");
        // Where it was is not known.
        assert_eq!(ended(WakersShown::WithReasons, STACK_MISSED), None);
    }

    #[test]
    fn how_time_varied_from_part_to_part_is_told() {
        let mut collected = collected();
        blocked(&mut collected, 0);
        let mut parts = vec![(5, Tally::default()); 8];
        parts[3].1.blocked = 50;
        collected.parts = parts;
        let named = collected.name(Unit::Nanoseconds, WakersShown::No, off_cpu);
        let states = named.profile.meta.bursts.iter().map(|bursts| bursts.state);
        assert!(states.eq([Some(State::Blocked), Some(State::Runnable)]));
    }

    #[test]
    fn wake_ups_that_were_not_seen_are_counted() {
        for (waker, missed) in [(WAKER_MISSED, 3), (WAKER_STILL_BLOCKED, 0)] {
            let mut collected = collected();
            blocked(&mut collected, waker);
            let shown = WakersShown::Yes { kernel: false };
            let named = collected.name(Unit::Nanoseconds, shown, off_cpu);
            assert_eq!(named.missed_wakers, missed);
        }
    }

    #[test]
    fn what_stacks_are_worth_is_counted_by_their_events() {
        let stack = |quality, outcome| NamedStack {
            stack: profile::Stack::default(),
            quality,
            outcome,
            last_module: None,
        };
        let mut worth = Worth::default();
        worth.judge(&stack(Quality::Whole, None), 1);
        assert!(!worth.walks.any());
        worth.judge(&stack(Quality::Truncated, None), 20);
        worth.judge(&stack(Quality::Truncated, None), 30);
        worth.judge(&stack(Quality::Missing, None), 400);
        let lost = Losses {
            stacks: 400,
            incomplete_user: 50,
            ..Losses::default()
        };
        assert_eq!(worth.losses, lost);
    }
}
