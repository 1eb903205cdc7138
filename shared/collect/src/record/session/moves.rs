//! Threads that join or leave the targets when their process moves to another cgroup
//! (`include/clock/moves.h`).

use std::time::{Duration, Instant};

use libbpf_rs::{Link, Map, MapCore, MapFlags, ProgramMut};
use loader::iterators::{self, copy};
use loader::{LoadedObject, Result, Targets, Variable, monotonic_ns, run_on_each};
use plain::Plain;

/// Interval between checks of pinned maps, which another program may change.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// State of following the moves of processes.
pub(crate) struct Moves<'a> {
    _links: Vec<Link>,
    visit_cpu: ProgramMut<'a>,
    find_departed: ProgramMut<'a>,
    threads: Map<'a>,
    /// Number of moves that programs noted, and number of moves that user space followed.
    noted: Variable<'a, u64>,
    followed: u64,
    /// Number of moves whose notes later moves may have overwritten before user space followed
    /// them.
    untimed: u64,
    /// Maximum number of notes that programs keep.
    capacity: u64,
    /// Time up to which user space has followed all moves, in ns of CLOCK_MONOTONIC.
    followed_until: Variable<'a, u64>,
    /// Time of the last check, if checks are also due without a move.
    looked: Option<Instant>,
}

impl<'a> Moves<'a> {
    /// Attaches the program that notes moves, if moves can change the targets.
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

    /// Returns whether user space must follow moves now.
    pub(crate) fn are_due(&self) -> bool {
        let is_time = |looked: Instant| looked.elapsed() >= LOOK_INTERVAL;
        self.noted.get() != self.followed || self.looked.is_some_and(is_time)
    }

    /// Begins to follow the moves so far. Returns the time up to which moves are followed.
    ///
    /// When this function returns, no program runs that began before the last move. No program uses
    /// the records of threads that left.
    pub(crate) fn begin(&mut self) -> Result<u64> {
        let noted = self.noted.get();
        self.untimed += (noted - self.followed).saturating_sub(self.capacity);
        self.followed = noted;
        self.looked = self.looked.map(|_| Instant::now());
        let until = monotonic_ns();
        run_on_each(&self.visit_cpu)?;
        Ok(until)
    }

    /// Takes the record of each thread that left, together with its entry of `find_departed`.
    /// `task` returns the task of an entry.
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
            // A thread that ended meanwhile deleted its record and sent its account.
            self.threads.delete(&key).ok()?;
            Some((departed, copy(&record)?))
        });
        Ok(taken.collect())
    }

    /// Returns the number of moves whose notes were overwritten before user space followed them.
    pub(crate) fn untimed(&self) -> u64 {
        self.untimed
    }

    /// Ends what [`Moves::begin`] began. All moves up to `until` have taken effect on every thread.
    pub(crate) fn end(&self, until: u64) {
        self.followed_until.set(until);
    }
}
