//! One run of a tool on the thread clock, from a loaded program to what it
//! counted.

use std::os::fd::OwnedFd;

use bpf::types::{ClockRecord, Tally};
use bpf::{ClockState, SharedState};
use libbpf_rs::{Link, MapMut, ProgramMut};

use crate::accounts::ThreadClocks;
use crate::error::missing;
use crate::seeds::{EarlyStacks, seed_threads};
use crate::{
    Collected, Collector, CountMaps, Kernel, Result, StackChoice, Targets, UnwindMaps, attach,
};

/// The parts of a loaded program that keeps the thread clock.
pub struct ClockProgram<'a, 'obj, State> {
    /// `include/counts.h`
    pub counts: CountMaps<'a, 'obj>,
    /// `include/unwind_tables.h`
    pub unwind: UnwindMaps<'a, 'obj>,
    /// Its variables.
    pub state: Option<&'a mut State>,
    /// `threads`
    pub threads: &'a MapMut<'obj>,
    /// `target_pids`, `target_tids`
    pub targets: [&'a MapMut<'obj>; 2],
    /// What runs at the scheduler's events.
    pub hooks: [&'a ProgramMut<'obj>; 4],
    /// `list_threads`
    pub list_threads: &'a ProgramMut<'obj>,
    /// `seed_threads`
    pub seed_threads: &'a ProgramMut<'obj>,
    /// `read_open_intervals`
    pub read_open_intervals: &'a ProgramMut<'obj>,
    /// `visit_cpu`
    pub visit_cpu: &'a ProgramMut<'obj>,
}

/// [`ClockProgram`] of a skeleton; the names are the same in all.
#[macro_export]
macro_rules! clock_program {
    ($skeleton:expr) => {{
        let maps = &mut $skeleton.maps;
        let programs = &$skeleton.progs;
        $crate::ClockProgram {
            counts: $crate::count_maps!(maps),
            unwind: $crate::unwind_maps!(maps),
            state: maps.bss_data.as_deref_mut(),
            threads: &maps.threads,
            targets: [&maps.target_pids, &maps.target_tids],
            hooks: [
                &programs.sched_switch,
                &programs.sched_waking,
                &programs.sched_wakeup_new,
                &programs.sched_process_exec,
            ],
            list_threads: &programs.list_threads,
            seed_threads: &programs.seed_threads,
            read_open_intervals: &programs.read_open_intervals,
            visit_cpu: &programs.visit_cpu,
        }
    }};
}

/// A program that is attached.
pub struct ClockSession<'a, 'obj, State> {
    collector: Collector<'a, 'obj, State>,
    threads: &'a MapMut<'obj>,
    links: Vec<Link>,
    list_threads: &'a ProgramMut<'obj>,
    seed_threads: &'a ProgramMut<'obj>,
    read_open_intervals: &'a ProgramMut<'obj>,
    stacks: StackChoice,
}

impl<'a, 'obj, State: ClockState + SharedState> ClockSession<'a, 'obj, State> {
    /// Names the targets to the program, attaches it and has the unwind tables
    /// of the targets made.
    pub fn attach(
        program: ClockProgram<'a, 'obj, State>,
        kernel: &Kernel,
        targets: &Targets,
        stacks: StackChoice,
    ) -> Result<Self> {
        let [target_pids, target_tids] = program.targets;
        targets.fill(kernel, target_pids, target_tids, program.list_threads)?;
        let links = attach(&program.hooks)?;
        let unwinder = stacks.unwinder(program.unwind);
        let state = program.state.ok_or_else(|| missing("variables"))?;
        let (counts, visit_cpu) = (program.counts, program.visit_cpu);
        let collector = Collector::new(counts, visit_cpu, state, unwinder, stacks.per_process)?;
        let mut session = ClockSession {
            collector: collector.with_threads(program.threads),
            threads: program.threads,
            links,
            list_threads: program.list_threads,
            seed_threads: program.seed_threads,
            read_open_intervals: program.read_open_intervals,
            stacks,
        };
        session.prepare(targets)?;
        Ok(session)
    }

    /// Has the unwind tables of more processes made.
    pub fn prepare(&mut self, targets: &Targets) -> Result<()> {
        self.collector.prepare(targets, self.list_threads)
    }

    /// Opens the window at `start`, and closes it at `stop` if that is known,
    /// both on CLOCK_MONOTONIC, nanoseconds. Returns when every thread has a
    /// clock. `is_early` says whether the start is yet to come, `wait` waits
    /// for it.
    pub fn open(
        &mut self,
        start: u64,
        stop: Option<u64>,
        is_early: impl Fn() -> bool,
        wait: impl FnOnce(),
    ) -> Result<()> {
        self.collector.open_window(start);
        if let Some(stop) = stop {
            self.collector.close_window(stop);
        }
        let early = self
            .stacks
            .user
            .then(|| EarlyStacks::read(self.seed_threads, &self.collector, is_early))
            .transpose()?;
        wait();
        seed_threads(self.seed_threads, self.threads, early, &mut self.collector)?;
        self.collector.state().set_threads_are_seeded();
        Ok(())
    }

    /// A descriptor that is readable when there is something to take.
    pub fn readiness(&self) -> Result<OwnedFd> {
        self.collector.readiness()
    }

    /// Takes what has arrived, and moves the window's end if `stop` says so.
    pub fn take(&mut self, stop: Option<u64>) -> Result<()> {
        if let Some(stop) = stop {
            self.collector.close_window(stop);
        }
        self.collector.take()
    }

    /// Ends the session, the window having closed at `stop`: `charge` says what
    /// an off-CPU interval that is still open then counts for, and with which
    /// waker. Returns what was counted, with every thread's account.
    pub fn close<Record: ClockRecord>(
        self,
        stop: u64,
        charge: impl Fn(&Record, Tally) -> Option<(Tally, u64)>,
    ) -> Result<Collected> {
        let open = ThreadClocks::<Record>::read_open_intervals(self.read_open_intervals)?;
        drop(self.links);
        let mut collected = self.collector.finish()?;
        let ended = std::mem::take(&mut collected.ended);
        let accounts = ThreadClocks::read(self.threads, open, stop)?.close(
            &ended,
            self.stacks.per_thread,
            (self.stacks.user, self.stacks.kernel),
            charge,
            |key, tally| collected.add(key, tally),
        );
        collected.accounts = accounts;
        Ok(collected)
    }
}
