//! One run of the BPF program, from opening it to the named profile.

use std::mem::MaybeUninit;

use anyhow::Context;
use bpf::offwaketime::OffwaketimeSkelBuilder;
use bpf::types::Tally;
use bpf::wakers::{SleepingThread, WAKER_MISSED, WAKER_STILL_BLOCKED, WAKER_UNWANTED};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use loader::{ClockSession, Kernel, Named, OffCpuFilter, TargetWatch, Targets, WakersShown};
use profile::{State, Unit, Weight};

use crate::arguments::Arguments;

/// What was measured.
pub(crate) struct Measured {
    /// Blocked time, and with `--states` the waits for a CPU after it.
    pub named: Named,
    /// Those waits in all, nanoseconds.
    pub runnable_ns: u64,
}

/// Measures for the length of `window`.
pub(crate) fn run(arguments: &Arguments, window: &mut cli::Window) -> anyhow::Result<Measured> {
    let kernel = Kernel::probe()?;
    let targets = arguments.target.targets();
    let wakers = arguments.wakers();
    let filter = arguments.intervals.filter();
    let stacks = arguments.stacks();

    let mut object = MaybeUninit::uninit();
    let mut open = OffwaketimeSkelBuilder::default().open(&mut object)?;
    let config = open
        .maps
        .rodata_data
        .as_deref_mut()
        .context("the program has no constants")?;
    kernel.configure(config);
    stacks.configure(config);
    filter.configure(&kernel, config);
    config.preempt_count_from_runqueue = kernel.preempt_count_from_runqueue;
    config.want_thread_ends = false;
    config.chain_length = arguments.chain;
    config.measure_everything = arguments.chain > 1;
    config.filter_waker_pids = !wakers.pids.is_empty();
    config.filter_waker_tids = !wakers.tids.is_empty();
    targets.configure(
        &kernel,
        config,
        &mut open.maps.target_pids,
        &mut open.maps.target_tids,
    )?;
    wakers.make_room(&mut open.maps.waker_pids, &mut open.maps.waker_tids)?;
    loader::size_thread_map(&mut open.maps.threads)?;
    // Anyone may be a waker.
    loader::size_unwind_maps(
        true,
        &mut open.maps.unwind_pages,
        &mut open.maps.unwind_mappings,
        &mut open.maps.unwind_processes,
    )?;

    let mut program = open.load().context("cannot load the BPF program")?;
    wakers.fill(
        &kernel,
        &program.maps.waker_pids,
        &program.maps.waker_tids,
        &program.progs.list_threads,
    )?;
    let program = loader::clock_program!(program);
    let mut session = ClockSession::attach(program, &kernel, &targets, stacks)?;
    // Of all the machine only those that wake get tables, when they first do.
    if !wakers.is_everything() {
        session.prepare(&wakers)?;
    }
    let start = window.begin()?;
    let is_early = || cli::monotonic_ns() < start;
    session.open(start, window.stop(), is_early, || cli::sleep_until(start))?;
    if !window.is_controlled() {
        eprintln!("{}", header(arguments));
    }

    let readiness = session.readiness()?;
    let mut watch = TargetWatch::new(&targets);
    let stop = window.follow(&readiness, |stop| {
        session.take(stop)?;
        Ok(watch.lives())
    })?;

    let collected = session.close(stop, |sleeper: &SleepingThread, tally| {
        charge(sleeper, tally, &targets, &wakers, &filter)
    })?;
    let runnable_ns = collected.tallies().map(|tally| tally.runnable).sum();
    let shown = WakersShown::Yes {
        kernel: stacks.kernel,
    };
    let states = arguments.states;
    let named = collected.name("offwaketime", Unit::Nanoseconds, shown, |tally| {
        let weight = |value| Weight {
            value,
            events: tally.events,
            longest: tally.longest,
        };
        let blocked = states.then_some(State::Blocked);
        let mut weights = vec![(blocked, weight(tally.blocked))];
        if states {
            weights.push((Some(State::Runnable), weight(tally.runnable)));
        }
        weights
    });
    Ok(Measured { named, runnable_ns })
}

/// What an interval that is open at the end counts for: `off_cpu_interval()` of
/// `offwaketime.bpf.c` for those.
fn charge(
    sleeper: &SleepingThread,
    tally: Tally,
    targets: &Targets,
    wakers: &Targets,
    filter: &OffCpuFilter,
) -> Option<(Tally, u64)> {
    let thread = &sleeper.thread;
    let is_chosen = targets.includes(thread.pid, thread.tid) && filter.kind.includes(thread);
    if tally.blocked == 0 || !filter.admits(tally.blocked, thread.off_state) || !is_chosen {
        return None;
    }
    let waker = match sleeper.waker {
        WAKER_MISSED if tally.runnable == 0 => WAKER_STILL_BLOCKED,
        waker => waker,
    };
    if waker <= WAKER_UNWANTED && !wakers.is_everything() {
        return None;
    }
    let longest = tally.blocked;
    Some((Tally { longest, ..tally }, waker))
}

fn header(arguments: &Arguments) -> String {
    let unit = if arguments.nanoseconds { "ns" } else { "us" };
    let subject = arguments.subject();
    let stacks = arguments.stacks.subject();
    format!(
        "Tracing blocked time ({unit}) of {subject} by {stacks} stack, and its waker... Hit Ctrl-C to end."
    )
}
