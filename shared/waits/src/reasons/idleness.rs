//! Whether a blocked thread had work: by what it waited for, on which side of a connection
//! that was, and how the wait ended. What a single wait does not tell, the others of the
//! same thread at the same place may; no names are asked.

use std::collections::HashMap;

use bpf::types::WaitEnd;
use profile::{
    Detail, Idleness, Name, Profile, Reason, RowMap, Sample, Side, StackId, ThreadId, Wait,
    WaitKind,
};

/// Of what is known of the waits at a place so many in a hundred must agree.
const AGREEING: u64 = 95;

/// Who waits: a thread, or all of one name where threads are not told apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Who {
    pub(super) thread: Option<ThreadId>,
    pub(super) comm: Name,
}

/// A place where it waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Site {
    pub(super) kind: WaitKind,
    pub(super) user: StackId,
}

/// How many waits at a place were of which kind, each up to four billions: there may be a
/// million places.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    waiting: u32,
    idle: u32,
    /// Ended by somebody who had not been set to work.
    new_work: u32,
    /// Ended by the time.
    timed: u32,
}

/// What is known of all waits.
#[derive(Default)]
pub(super) struct Evidence {
    of: HashMap<Who, RowMap<Site, Waits>>,
}

/// What a wait tells by itself.
pub(super) fn told(kind: WaitKind, side: Side, end: WaitEnd) -> Option<Idleness> {
    match (kind.reason, kind.detail) {
        (
            Reason::Lock
            | Reason::KernelLock
            | Reason::Child
            | Reason::DiskRead
            | Reason::DiskWrite
            | Reason::PageFault
            | Reason::Memory
            | Reason::Throttle,
            _,
        )
        | (Reason::Condition, Detail::Barrier)
        | (
            Reason::Stopped,
            Detail::BySignal | Detail::ByDebugger | Detail::Frozen | Detail::CoreDump,
        ) => {
            return Some(Idleness::Waiting);
        }
        // It may be a lock that nobody ever releases.
        (Reason::Unknown, _) if end == WaitEnd::WAIT_END_NONE => return None,
        _ if end == WaitEnd::WAIT_END_NONE => return Some(Idleness::Dormant),
        (Reason::Kernel, Detail::KernelThread | Detail::RingWorker | Detail::VhostWorker) => {
            return Some(Idleness::Idle);
        }
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
    /// Takes in so many waits that ended alike.
    pub(super) fn add(
        &mut self,
        who: Who,
        site: Site,
        told: Option<Idleness>,
        end: WaitEnd,
        events: u64,
    ) {
        let waits = self.of.entry(who).or_default().entry(site);
        let sum = match (told, end) {
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

    /// Decides of the blocked samples of which nothing was told.
    pub(super) fn judge(&self, profile: &mut Profile) {
        let habits: HashMap<Who, Habits> = (self.of.iter())
            .map(|(who, places)| (*who, Habits::of(places.values())))
            .collect();
        if habits.is_empty() {
            return;
        }
        profile.replace_samples(|profile, sample| {
            let judged = self.judged(profile, &habits, *sample);
            Some(judged.unwrap_or(*sample))
        });
    }

    /// The sample with what the other waits of its thread tell; `None` if nothing is to be
    /// told, or they tell nothing.
    fn judged(
        &self,
        profile: &mut Profile,
        habits: &HashMap<Who, Habits>,
        sample: Sample,
    ) -> Option<Sample> {
        let wait = *profile.wait(&sample)?;
        if wait.idleness != Idleness::Unknown {
            return None;
        }
        let who = Who {
            thread: sample.thread,
            comm: sample.comm,
        };
        let site = Site {
            kind: wait.kind,
            user: sample.stack.user,
        };
        let waits = self.of.get(&who)?.get(&site)?;
        let idleness = habits.get(&who)?.judge(site.kind.reason, waits)?;
        Some(Sample {
            wait: Some(profile.waits.id(Wait { idleness, ..wait })),
            ..sample
        })
    }
}

/// Whether a wait for this may end because its time is over.
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

/// What all waits of a thread tell of it, at however many places.
///
/// A thread waits for new work at one place, its home. Where what comes there says so by
/// itself that is known. Else it is the only place at which it was given new work: at a
/// second one it may be in the middle of what it was given at the first. (A few waits
/// elsewhere, such as those whose stacks were missed, are no place.) Who was given none, and
/// waits for the time, works by the clock, and has nothing to do between.
struct Habits {
    /// Whether its home says so by itself.
    has_home: bool,
    /// Waits after which it may have begun something new.
    begins: u64,
    /// Places at which it was given new work.
    given: usize,
}

impl Habits {
    fn of<'a>(places: impl Iterator<Item = &'a Waits> + Clone) -> Habits {
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

    /// What the waits at a place were whose own end does not tell.
    fn judge(&self, reason: Reason, waits: &Waits) -> Option<Idleness> {
        let known = sum(&[waits.waiting, waits.idle, waits.new_work]);
        let agree = |kinds: &[u32]| sum(kinds) * 100 >= known * AGREEING;
        // Who lets go of a lock owes nothing either, and a futex may be one.
        let can_be_lock = reason == Reason::Unknown;
        let new_work = if can_be_lock { 0 } else { waits.new_work };
        match self.is_home(waits) {
            true if agree(&[waits.idle, new_work]) => Some(Idleness::Idle),
            false if waits.waiting > 0 && agree(&[waits.waiting]) => Some(Idleness::Waiting),
            _ => None,
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

    /// What is judged of the first of the places of a thread.
    fn of_first(reason: Reason, all: &[Waits]) -> Option<Idleness> {
        Habits::of(all.iter()).judge(reason, &all[0])
    }

    #[test]
    fn a_thread_waits_for_work_at_one_place() {
        use Idleness::{Idle, Waiting};
        let work = waits(0, 0, 9, 1);
        for (all, expected) in [
            // The only place where work comes, also where a wait timed out.
            (&[work][..], Some(Idle)),
            (&[work, waits(5, 0, 0, 0)], Some(Idle)),
            // Which of the two it is nobody knows.
            (&[work, work], None),
            // Too few for a place.
            (&[waits(0, 0, 99, 0), waits(0, 0, 1, 0)], Some(Idle)),
            (&[waits(0, 0, 1, 0), waits(0, 0, 99, 0)], None),
            (&[waits(0, 0, 999, 0), waits(0, 0, 11, 0)], Some(Idle)),
            // It is another one.
            (&[work, waits(0, 5, 0, 0)], None),
            (&[waits(0, 9, 1, 3), waits(0, 0, 3, 0)], Some(Idle)),
            // Answers come there, too.
            (&[waits(1, 0, 9, 0)], None),
            (&[waits(1, 0, 99, 0)], Some(Idle)),
            (&[waits(99, 0, 1, 0)], None),
            (&[waits(9, 0, 0, 1)], Some(Waiting)),
            (&[waits(0, 0, 1, 99)], Some(Idle)),
            // By the clock, unless somebody gives work elsewhere.
            (&[waits(0, 0, 0, 9)], Some(Idle)),
            (&[waits(0, 0, 0, 9), waits(3, 0, 0, 0)], Some(Idle)),
            (&[waits(0, 0, 0, 9), waits(0, 0, 1, 0)], None),
            (&[waits(0, 0, 0, 99), waits(0, 0, 1, 0)], Some(Idle)),
            (&[waits(0, 0, 0, 9), waits(0, 1, 0, 0)], None),
            // It is not known how any of these ended.
            (&[waits(0, 0, 0, 0)], None),
            (&[waits(0, 0, 0, 0), waits(0, 0, 0, 9)], None),
        ] {
            assert_eq!(of_first(Reason::Condition, all), expected, "{all:?}");
        }
    }

    #[test]
    fn what_may_be_a_lock_is_no_place_for_new_work() {
        let work = waits(0, 0, 9, 1);
        assert_eq!(of_first(Reason::Unknown, &[work]), None);
        // But perhaps one after all.
        assert_eq!(of_first(Reason::Unknown, &[work, work]), None);
        let by_the_clock = waits(0, 0, 0, 9);
        let idle = Some(Idleness::Idle);
        assert_eq!(of_first(Reason::Unknown, &[by_the_clock]), idle);
    }

    /// A look at all of a thread's places for each of them would never end.
    #[test]
    fn a_thread_may_wait_at_very_many_places() {
        const PLACES: usize = 1 << 16;
        let mut profile = Profile::new(Unit::Nanoseconds);
        let comm = profile.names.text("wanders");
        let who = Who { thread: None, comm };
        let mut evidence = Evidence::default();
        for at in 0..PLACES {
            let detail = Detail::Named(profile.names.text(&format!("{at}")));
            let kind = WaitKind::new(Reason::Sleep, detail);
            let site = Site {
                kind,
                user: StackId::default(),
            };
            evidence.add(who, site, None, WaitEnd::WAIT_END_INTERRUPT, 1);
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
