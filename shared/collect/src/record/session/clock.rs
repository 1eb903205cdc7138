//! Session of an object with a thread clock, from the loaded object to its counts.

use std::os::fd::OwnedFd;
use std::time::Duration;

use bpf::types::{Departure, Thread};
use bpf::{ProgramName, programs};
use libbpf_rs::{Link, Map, ProgramMut};
use loader::{Kernel, LoadedObject, Result, Targets, Variable, iterators, sleep_until};

use crate::record::account::Account;
use crate::record::session::closing::Closing;
use crate::record::session::moves::Moves;
use crate::record::session::pace::Pace;
use crate::record::session::pre_existing::{EarlyStacks, find_preexisting};
use crate::record::session::returns::Returns;
use crate::record::timeline::{self, Receiver};
use crate::record::{Collected, Collector, RowSink, Session, StackChoice};

/// Programs at scheduler events (`include/clock/clock_events.h`).
const HOOKS: [ProgramName; 4] = [
    programs::SCHED_SWITCH,
    programs::SCHED_WAKING,
    programs::SCHED_WAKEUP_NEW,
    programs::SCHED_PROCESS_EXEC,
];

/// Interval between takes for a while after news. The first stack of a process also wakes user
/// space.
const OFTEN: Duration = Duration::from_millis(20);

/// Attached object that measures threads with the thread clock.
pub struct ClockSession<'a> {
    collector: Collector<'a>,
    threads: Map<'a>,
    links: Vec<Link>,
    pace: Pace<'a>,
    find_preexisting: ProgramMut<'a>,
    read_open_intervals: ProgramMut<'a>,
    preexisting_are_known: Variable<'a, u8>,
    stacks: StackChoice,
    closing: Closing<'a>,
    moves: Option<Moves<'a>>,
    returns: Option<Returns<'a>>,
    /// Accounts of threads that left the targets.
    departed: Vec<Account>,
    /// Start of the window, in ns of CLOCK_MONOTONIC.
    start: u64,
}

impl<'a> ClockSession<'a> {
    /// Writes the targets, attaches the programs, and builds the unwind tables of the targets.
    pub fn attach(
        object: &'a LoadedObject,
        kernel: &Kernel,
        targets: &Targets,
        stacks: StackChoice,
    ) -> Result<Self> {
        let mut links = targets.fill(object, kernel)?;
        links.extend(object.attach(&HOOKS)?);
        if stacks.timeline_least_ns.is_some() {
            links.extend(object.attach(&timeline::PROGRAMS)?);
        }
        let returns = Returns::attach(object, &mut links)?;
        let mut session = ClockSession {
            links,
            pace: Pace::new(object, targets, OFTEN..Pace::SELDOM)?,
            collector: Collector::new(object, &stacks)?,
            threads: object.map(bpf::maps::THREADS)?,
            find_preexisting: object.program(programs::FIND_PREEXISTING)?,
            read_open_intervals: object.program(programs::READ_OPEN_INTERVALS)?,
            preexisting_are_known: object.variable(bpf::variables::PREEXISTING_ARE_KNOWN)?,
            stacks,
            closing: Closing::new(object)?,
            moves: Moves::new(object, targets)?,
            returns,
            departed: Vec::new(),
            start: 0,
        };
        session.prepare(targets)?;
        Ok(session)
    }

    /// Builds the unwind tables of these processes, too.
    pub fn prepare(&mut self, targets: &Targets) -> Result<()> {
        self.collector.prepare(targets)
    }
}

impl ClockSession<'_> {
    /// Takes the records of threads that left the targets. Programs closed these records at the
    /// times of the moves. Then makes records of threads that joined the targets.
    fn follow_moves(&mut self) -> Result<()> {
        let Some(moves) = &mut self.moves else {
            return Ok(());
        };
        let until = moves.begin()?;
        let task = |departure: &Departure| departure.task;
        for (departure, thread) in moves.take_departed::<Departure, Thread>(task)? {
            self.departed.push(Account::new(&thread, departure.left));
            if departure.has_interval != 0 {
                let interval = departure.interval;
                self.collector.add(interval.key, &interval.weight);
            }
        }
        let oldest_ns = self.collector.oldest_ns();
        (self.departed).retain(|account| account.clock.ended_ns >= oldest_ns);
        let early = self.stacks.user.then(EarlyStacks::default);
        find_preexisting(
            &self.find_preexisting,
            &self.threads,
            early,
            &mut self.collector,
        )?;
        moves.end(until);
        Ok(())
    }
}

impl Session for ClockSession<'_> {
    fn take_interval(&self) -> Duration {
        self.pace.interval()
    }

    fn open_window(&mut self, start: u64, stop: Option<u64>) {
        self.start = start;
        self.collector.open_window(start, stop);
    }

    /// Waits for `start`, and returns once every thread has a clock.
    fn begin<Started>(
        &mut self,
        start: u64,
        at_start: impl FnOnce() -> Started,
    ) -> Result<Started> {
        let (iterator, threads) = (&self.find_preexisting, &self.threads);
        let early = self
            .stacks
            .user
            .then(|| EarlyStacks::read(iterator, &self.collector, start))
            .transpose()?;
        sleep_until(start);
        let started = at_start();
        find_preexisting(iterator, threads, early, &mut self.collector)?;
        self.preexisting_are_known.set(1);
        Ok(started)
    }

    fn note_first_target(&mut self, start: u64) {
        self.start = start;
        self.collector.begin_parts(start);
    }

    fn readiness(&self) -> Result<OwnedFd> {
        self.collector.readiness()
    }

    fn take(&mut self, stop: Option<u64>) -> Result<()> {
        self.collector.take(stop)?;
        if self.moves.as_ref().is_some_and(Moves::are_due) {
            self.follow_moves()
        } else {
            Ok(())
        }
    }

    fn stream_timeline(&mut self, sink: RowSink) {
        self.collector.stream_timeline(sink);
    }

    fn with_collector(&mut self, body: &mut dyn FnMut(&mut Collector<'_>)) {
        body(&mut self.collector);
    }

    fn close(mut self, stop: u64) -> Result<Collected> {
        self.follow_moves()?;
        // This take renews the shares. No process has then used up its share of the ring buffer
        // when stacks are read.
        self.collector.take(Some(stop))?;
        iterators::visit(&self.read_open_intervals)?;
        if let Some(returns) = &self.returns {
            returns.read_stacks(&mut self.collector)?;
        }
        drop(self.links);
        let untimed = self.moves.as_ref().map_or(0, Moves::untimed);
        drop(self.moves);
        let mut timeline = self.collector.take_timeline();
        // From here on, no program changes a record.
        let mut collected = self.collector.finish()?;
        for returning in self.returns.iter().flat_map(Returns::left_over) {
            collected.add(returning.key, &returning.weight);
            if let Some(timeline) = &timeline {
                timeline.with_timeline(|timeline| timeline.add_returning(&returning));
            }
        }
        let left_unseen = (self.closing).close(stop, timeline.as_mut(), |closed| {
            collected.add(closed.key, &closed.weight);
        })?;
        collected.timeline = timeline.map(Receiver::finish).transpose()?;
        let ended = std::mem::take(&mut collected.ended);
        let accounts = (self.closing).take_accounts(stop, &ended, self.departed)?;
        collected.lost.switches += left_unseen;
        collected.left_out.moves = untimed;
        collected.add_accounts(accounts);
        collected.keep_recorded(self.start..stop);
        Ok(collected)
    }
}
