//! One run on the thread clock, from a loaded object to what it counted.

use std::os::fd::OwnedFd;

use bpf::types::{ClockRecord, Tally};
use libbpf_rs::{Link, Map, ProgramMut};
use loader::{Kernel, LoadedObject, Result, Targets, Variable, sleep_until};

use crate::session::accounts::ThreadClocks;
use crate::session::pre_existing::{EarlyStacks, find_preexisting};
use crate::{Collected, Collector, Session, StackChoice};

/// What runs at the scheduler's events: `include/clock/clock_events.h`.
const HOOKS: [&str; 4] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup_new",
    "sched_process_exec",
];

/// What an off-CPU interval that is open at the end counts for, and with which waker.
pub type Charge<'a, Record> = Box<dyn Fn(&Record, Tally) -> Option<(Tally, u64)> + 'a>;

/// An object that is attached.
pub struct ClockSession<'a, Record> {
    collector: Collector<'a>,
    threads: Map<'a>,
    links: Vec<Link>,
    find_preexisting: ProgramMut<'a>,
    read_open_intervals: ProgramMut<'a>,
    preexisting_are_known: Variable<'a, u8>,
    stacks: StackChoice,
    charge: Charge<'a, Record>,
}

impl<'a, Record> ClockSession<'a, Record> {
    /// Names the targets to the programs, attaches them and has the unwind tables
    /// of the targets made. The records of threads are each a `Record`.
    pub fn attach(
        object: &'a LoadedObject,
        kernel: &Kernel,
        targets: &Targets,
        stacks: StackChoice,
        charge: Charge<'a, Record>,
    ) -> Result<Self> {
        targets.fill(object, kernel)?;
        let mut session = ClockSession {
            links: object.attach(&HOOKS)?,
            collector: Collector::new(object, &stacks)?,
            threads: object.map("threads")?,
            find_preexisting: object.program("find_preexisting")?,
            read_open_intervals: object.program("read_open_intervals")?,
            preexisting_are_known: object.variable("preexisting_are_known")?,
            stacks,
            charge,
        };
        session.prepare(targets)?;
        Ok(session)
    }

    /// Has the unwind tables of more processes made.
    pub fn prepare(&mut self, targets: &Targets) -> Result<()> {
        self.collector.prepare(targets)
    }
}

impl<Record: ClockRecord> Session for ClockSession<'_, Record> {
    /// Returns when every thread has a clock.
    fn open(&mut self, start: u64, stop: Option<u64>) -> Result<()> {
        self.collector.open_window(start, stop);
        let (iterator, threads) = (&self.find_preexisting, &self.threads);
        let early = self
            .stacks
            .user
            .then(|| EarlyStacks::read(iterator, &self.collector, start))
            .transpose()?;
        sleep_until(start);
        find_preexisting(iterator, threads, early, &mut self.collector)?;
        self.preexisting_are_known.set(1);
        Ok(())
    }

    fn readiness(&self) -> Result<OwnedFd> {
        self.collector.readiness()
    }

    fn take(&mut self, stop: Option<u64>) -> Result<()> {
        self.collector.take(stop)
    }

    fn close(self, stop: u64) -> Result<Collected> {
        let open = ThreadClocks::<Record>::read_open_intervals(&self.read_open_intervals)?;
        drop(self.links);
        let mut collected = self.collector.finish()?;
        let ended = std::mem::take(&mut collected.ended);
        let accounts = ThreadClocks::read(&self.threads, open, stop)?.close(
            &ended,
            self.stacks.per_thread,
            (self.stacks.user, self.stacks.kernel),
            self.charge,
            |key, tally| collected.add(key, tally),
        );
        collected.accounts = accounts;
        Ok(collected)
    }
}
