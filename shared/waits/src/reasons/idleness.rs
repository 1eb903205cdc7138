//! Decides whether a blocked thread had work. The decision depends on the kind of the wait, the
//! side of the connection, and how the wait ended.
//!
//! If a single wait shows nothing, other waits of the same thread at the same place decide. Names
//! do not matter.
//! decide. No names are used.

use std::collections::HashMap;

use bpf::types::WaitEnd;
use profile::{
    Detail, Id, Idleness, Name, Profile, Reason, RowMap, Sample, Side, StackId, ThreadId, Wait,
    WaitKind,
};

/// Share of the known waits at a place that must agree, in percent.
const AGREEING: u64 = 95;

/// Thread, or all threads with one name if the profile does not distinguish threads.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Waiter {
    pub(super) thread: Option<ThreadId>,
    pub(super) comm: Name,
}

/// Place at which a waiter waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Site {
    pub(super) kind: WaitKind,
    pub(super) user: StackId,
}

/// Number of waits at a place, by how they ended. Counters saturate at 2³² - 1. They are small
/// because there may be a million places.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    waiting: u32,
    idle: u32,
    /// Waits that ended by a waker to which nothing had given work.
    new_work: u32,
    /// Waits that ended by a timeout.
    timed: u32,
}

/// Waits of all threads, by waiter and place.
#[derive(Default)]
pub(super) struct Evidence {
    by_waiter: HashMap<Waiter, RowMap<Site, Waits>>,
}

/// Returns whether the thread had work, if the wait alone shows this.
pub(super) fn idleness_of_wait(kind: WaitKind, side: Side, end: WaitEnd) -> Option<Idleness> {
    match (kind.reason, kind.detail) {
        (
            Reason::Lock
            | Reason::KernelLock
            | Reason::Child
            | Reason::DiskRead
            | Reason::DiskWrite
            | Reason::PageFault
            | Reason::Memory
            | Reason::Throttle
            | Reason::Runtime,
            _,
        )
        | (Reason::Condition, Detail::Barrier)
        | (
            Reason::Stopped,
            Detail::BySignal | Detail::ByDebugger | Detail::Frozen | Detail::CoreDump,
        ) => {
            return Some(Idleness::Waiting);
        }
        // No thread may ever release the lock for which this thread waits.
        (Reason::Unknown, _) if end == WaitEnd::WAIT_END_NONE => return None,
        _ if end == WaitEnd::WAIT_END_NONE => return Some(Idleness::Dormant),
        (Reason::Kernel, Detail::KernelThread | Detail::RingWorker | Detail::VhostWorker) => {
            return Some(Idleness::Idle);
        }
        (Reason::Condition, Detail::RuntimeTask) => return Some(Idleness::Idle),
        (Reason::Network | Reason::LocalIpc, Detail::Send | Detail::Connect) => {
            return Some(Idleness::Waiting);
        }
        _ => {}
    }
    match (side, end) {
        (Side::Listens | Side::Answers, _) => Some(Idleness::Idle),
        (Side::Asks, _) | (_, WaitEnd::WAIT_END_ANSWER) => Some(Idleness::Waiting),
        _ => None,
    }
}

impl Evidence {
    /// Adds `events` waits that ended in the same way.
    pub(super) fn add(
        &mut self,
        waiter: Waiter,
        site: Site,
        idleness: Option<Idleness>,
        end: WaitEnd,
        events: u64,
    ) {
        let waits = self.by_waiter.entry(waiter).or_default().entry(site);
        let sum = match (idleness, end) {
            (Some(Idleness::Waiting), _) => &mut waits.waiting,
            (Some(Idleness::Idle), _) => &mut waits.idle,
            (None, WaitEnd::WAIT_END_NEW_WORK) => &mut waits.new_work,
            (None, WaitEnd::WAIT_END_INTERRUPT) if can_time_out(site.kind.reason) => {
                &mut waits.timed
            }
            _ => return,
        };
        *sum = sum.saturating_add(u32::try_from(events).unwrap_or(u32::MAX));
    }

    /// Decides for the blocked samples whose own waits show nothing. Returns the new numbers of the
    /// samples; `None` if no number changes.
    pub(super) fn judge(&self, profile: &mut Profile) -> Option<Vec<Option<Id<Sample>>>> {
        let habits: HashMap<Waiter, Habits> = (self.by_waiter.iter())
            .map(|(waiter, places)| (*waiter, Habits::new(places.values())))
            .collect();
        if habits.is_empty() {
            return None;
        }
        Some(profile.replace_samples(|profile, sample| {
            let judged = self.judge_sample(profile, &habits, *sample);
            Some(judged.unwrap_or(*sample))
        }))
    }

    /// Returns the sample with a decision from other waits of its thread. Returns `None` if the
    /// sample needs no decision, or if the other waits show nothing.
    fn judge_sample(
        &self,
        profile: &mut Profile,
        habits: &HashMap<Waiter, Habits>,
        sample: Sample,
    ) -> Option<Sample> {
        let wait = *profile.wait(&sample)?;
        if wait.idleness != Idleness::Unknown {
            return None;
        }
        let waiter = Waiter {
            thread: sample.thread,
            comm: sample.comm,
        };
        let site = Site {
            kind: wait.kind,
            user: sample.stack.user,
        };
        let waits = self.by_waiter.get(&waiter)?.get(&site)?;
        let idleness = habits.get(&waiter)?.judge(site.kind.reason, waits)?;
        Some(Sample {
            wait: Some(profile.waits.id(Wait { idleness, ..wait })),
            ..sample
        })
    }
}

fn can_time_out(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Sleep
            | Reason::Condition
            | Reason::Events
            | Reason::LocalIpc
            | Reason::Stopped
            | Reason::Unknown
    )
}

/// Sums over all waits of a thread, for any number of places.
///
/// A thread waits for new work at one place, its home. If waits at a place show on their own that
/// they are idle, this place is the home. Otherwise the home is the only place at which the thread
/// got new work. At a second place, the thread may be in the middle of work from the first place. A
/// few waits elsewhere do not make a place, such as waits with missed stacks. A thread that got no
/// work, and waits for timeouts, works by the clock. It has no work in between.
struct Habits {
    /// True if some waits show on their own that they are idle.
    has_home: bool,
    /// Waits after which the thread may have begun new work.
    begins: u64,
    /// Places at which the thread got new work.
    given: usize,
}

impl Habits {
    fn new<'a>(places: impl Iterator<Item = &'a Waits> + Clone) -> Habits {
        let begins = (places.clone()).map(|waits| sum(&[waits.new_work, waits.timed]));
        let mut habits = Habits {
            has_home: places.clone().any(|waits| waits.idle > 0),
            begins: begins.sum(),
            given: 0,
        };
        habits.given = places.filter(|waits| habits.is_given(waits)).count();
        habits
    }

    fn is_given(&self, waits: &Waits) -> bool {
        sum(&[waits.new_work]) * 100 > self.begins * (100 - AGREEING)
    }

    fn is_home(&self, waits: &Waits) -> bool {
        match self.given {
            _ if self.has_home => waits.idle > 0,
            0 => waits.timed > 0 && waits.waiting == 0,
            1 => self.is_given(waits),
            _ => false,
        }
    }

    /// Decides for the waits at a place whose own ends show nothing.
    fn judge(&self, reason: Reason, waits: &Waits) -> Option<Idleness> {
        let known = sum(&[waits.waiting, waits.idle, waits.new_work]);
        let agree = |kinds: &[u32]| sum(kinds) * 100 >= known * AGREEING;
        // A thread that releases a lock wakes the waiter although nothing gave it work. This futex
        // may be a lock.
        let can_be_lock = reason == Reason::Unknown;
        let new_work = if can_be_lock { 0 } else { waits.new_work };
        let is_home = self.is_home(waits);
        if is_home && agree(&[waits.idle, new_work]) {
            Some(Idleness::Idle)
        } else if !is_home && waits.waiting > 0 && agree(&[waits.waiting]) {
            Some(Idleness::Waiting)
        } else {
            None
        }
    }
}

fn sum(counts: &[u32]) -> u64 {
    counts.iter().copied().map(u64::from).sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use profile::{Stack, Unit, Weight};

    use super::*;

    fn waits(waiting: u32, idle: u32, new_work: u32, timed: u32) -> Waits {
        Waits {
            waiting,
            idle,
            new_work,
            timed,
        }
    }

    /// Returns the decision for the first place of a thread with these places.
    fn judge_first(reason: Reason, all: &[Waits]) -> Option<Idleness> {
        Habits::new(all.iter()).judge(reason, &all[0])
    }

    #[test]
    fn a_thread_waits_for_work_at_one_place() {
        use Idleness::{Idle, Waiting};
        let work = waits(0, 0, 9, 1);
        for (all, expected) in [
            // The thread gets work at one place only. One of its waits there timed out.
            (&[work][..], Some(Idle)),
            (&[work, waits(5, 0, 0, 0)], Some(Idle)),
            // Either of the two places may be the home.
            (&[work, work], None),
            // One of the two places has too few waits to count as a place.
            (&[waits(0, 0, 99, 0), waits(0, 0, 1, 0)], Some(Idle)),
            (&[waits(0, 0, 1, 0), waits(0, 0, 99, 0)], None),
            (&[waits(0, 0, 999, 0), waits(0, 0, 11, 0)], Some(Idle)),
            // The home is another place.
            (&[work, waits(0, 5, 0, 0)], None),
            (&[waits(0, 9, 1, 3), waits(0, 0, 3, 0)], Some(Idle)),
            // The thread also waits for answers at this place.
            (&[waits(1, 0, 9, 0)], None),
            (&[waits(1, 0, 99, 0)], Some(Idle)),
            (&[waits(99, 0, 1, 0)], None),
            (&[waits(9, 0, 0, 1)], Some(Waiting)),
            (&[waits(0, 0, 1, 99)], Some(Idle)),
            // The thread works by the clock, unless another thread gives it work elsewhere.
            (&[waits(0, 0, 0, 9)], Some(Idle)),
            (&[waits(0, 0, 0, 9), waits(3, 0, 0, 0)], Some(Idle)),
            (&[waits(0, 0, 0, 9), waits(0, 0, 1, 0)], None),
            (&[waits(0, 0, 0, 99), waits(0, 0, 1, 0)], Some(Idle)),
            (&[waits(0, 0, 0, 9), waits(0, 1, 0, 0)], None),
            // No wait shows how it ended.
            (&[waits(0, 0, 0, 0)], None),
            (&[waits(0, 0, 0, 0), waits(0, 0, 0, 9)], None),
        ] {
            assert_eq!(judge_first(Reason::Condition, all), expected, "{all:?}");
        }
    }

    #[test]
    fn what_may_be_a_lock_is_no_place_for_new_work() {
        let work = waits(0, 0, 9, 1);
        assert_eq!(judge_first(Reason::Unknown, &[work]), None);
        // Neither of two such places is the home, because each may be one for new work.
        assert_eq!(judge_first(Reason::Unknown, &[work, work]), None);
        let by_the_clock = waits(0, 0, 0, 9);
        let idle = Some(Idleness::Idle);
        assert_eq!(judge_first(Reason::Unknown, &[by_the_clock]), idle);
    }

    /// A pass over all places of the thread for each of its places would take quadratic time.
    #[test]
    fn a_thread_may_wait_at_very_many_places() {
        const PLACES: usize = 1 << 16;
        let mut profile = Profile::new(Unit::Nanoseconds);
        let comm = profile.names.text("wanders");
        let waiter = Waiter { thread: None, comm };
        let mut evidence = Evidence::default();
        for at in 0..PLACES {
            let detail = Detail::Named(profile.names.text(&format!("{at}")));
            let kind = WaitKind::new(Reason::Sleep, detail);
            let site = Site {
                kind,
                user: StackId::default(),
            };
            evidence.add(waiter, site, None, WaitEnd::WAIT_END_INTERRUPT, 1);
            let sample = Sample {
                wait: Some(profile.waits.id(Wait::new(kind))),
                ..Sample::new(comm, None, Stack::default())
            };
            profile.add(sample, Weight::default());
        }
        evidence.judge(&mut profile);
        let idle = (profile.samples.keys())
            .filter(|sample| profile.wait(sample).unwrap().idleness == Idleness::Idle);
        assert_eq!(idle.count(), PLACES);
    }
}
