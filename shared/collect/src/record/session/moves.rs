//! Threads that come to be measured when their process moves, or no longer are:
//! `include/clock/moves.h`.

use std::time::{Duration, Instant};

use libbpf_rs::{Link, Map, MapCore, MapFlags, ProgramMut};
use loader::iterators::{self, copy};
use loader::{LoadedObject, Result, Targets, Variable, monotonic_ns, run_on_each};
use plain::Plain;

/// Whom a map lets through that somebody else may change is looked at this often.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Who is measured, where that changes.
pub(crate) struct Moves<'a> {
    _links: Vec<Link>,
    visit_cpu: ProgramMut<'a>,
    find_departed: ProgramMut<'a>,
    threads: Map<'a>,
    /// How many moves were noted, and how many of these have been followed.
    noted: Variable<'a, u64>,
    followed: u64,
    /// Moves whose notes others may have pushed out before they were followed.
    untimed: u64,
    /// Moves of which notes are kept.
    capacity: u64,
    /// Notes up to here are of no use any more, CLOCK_MONOTONIC ns.
    followed_until: Variable<'a, u64>,
    /// When it was last looked, where that is to be done without a move, too.
    looked: Option<Instant>,
}

impl<'a> Moves<'a> {
    /// Has moves noted, if they matter for the targets.
    pub(crate) fn new(object: &'a LoadedObject, targets: &Targets) -> Result<Option<Moves<'a>>> {
        if !targets.by_membership() {
            return Ok(None);
        }
        Ok(Some(Moves {
            _links: object.attach(&[bpf::programs::NOTE_MOVE])?,
            visit_cpu: object.program(bpf::programs::VISIT_CPU)?,
            find_departed: object.program(bpf::programs::FIND_DEPARTED)?,
            threads: object.map(bpf::maps::THREADS)?,
            noted: object.variable(bpf::variables::MOVES)?,
            followed: 0,
            untimed: 0,
            capacity: object.map(bpf::maps::MOVED)?.max_entries().into(),
            followed_until: object.variable(bpf::variables::MOVES_FOLLOWED)?,
            looked: targets.has_pinned_maps().then(Instant::now),
        }))
    }

    /// Whether there is a move to be followed.
    pub(crate) fn are_due(&self) -> bool {
        let is_time = |looked: Instant| looked.elapsed() >= LOOK_INTERVAL;
        self.noted.get() != self.followed || self.looked.is_some_and(is_time)
    }

    /// Begins to follow the moves so far. Returns until when that is.
    ///
    /// No program that began before the last of them runs any more when this returns: the
    /// records of those that left are nobody's.
    pub(crate) fn begin(&mut self) -> Result<u64> {
        let noted = self.noted.get();
        self.untimed += (noted - self.followed).saturating_sub(self.capacity);
        self.followed = noted;
        self.looked = self.looked.map(|_| Instant::now());
        let until = monotonic_ns();
        run_on_each(&self.visit_cpu)?;
        Ok(until)
    }

    /// Takes the records of the threads that left, each with what `find_departed` writes of
    /// it. `task` says whose that is.
    pub(crate) fn take_departed<Departed, Record>(
        &self,
        task: impl Fn(&Departed) -> u64,
    ) -> Result<Vec<(Departed, Record)>>
    where
        Departed: Plain + Copy + Default,
        Record: Plain + Copy + Default,
    {
        let departed: Vec<Departed> = iterators::run(&self.find_departed)?;
        let taken = departed.into_iter().filter_map(|departed| {
            let key = task(&departed).to_ne_bytes();
            let record = self.threads.lookup(&key, MapFlags::ANY).ok().flatten()?;
            // One that ended meanwhile has sent its account.
            self.threads.delete(&key).ok()?;
            Some((departed, copy(&record)?))
        });
        Ok(taken.collect())
    }

    /// Returns how many moves came too fast to be timed.
    pub(crate) fn untimed(&self) -> u64 {
        self.untimed
    }

    /// Ends what was begun: every thread is what it is to be since the moves up to `until`.
    pub(crate) fn end(&self, until: u64) {
        self.followed_until.set(until);
    }
}
