//! One run of the BPF program, from opening it to the named profile.

use std::mem::MaybeUninit;

use anyhow::Context;
use bpf::offcputime::OffcputimeSkelBuilder;
use bpf::types::Thread;
use bpf::wakers::WAKER_MISSED;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use loader::{ClockSession, Kernel, Named, TargetWatch, WakersShown};
use profile::{State, Unit, Weight};

use crate::arguments::Arguments;

/// Measures for the length of `window`.
pub(crate) fn run(arguments: &Arguments, window: &mut cli::Window) -> anyhow::Result<Named> {
    let kernel = Kernel::probe()?;
    let targets = arguments.target.targets();
    let filter = arguments.intervals.filter();
    let stacks = arguments.stacks();

    let mut object = MaybeUninit::uninit();
    let mut open = OffcputimeSkelBuilder::default().open(&mut object)?;
    let config = open
        .maps
        .rodata_data
        .as_deref_mut()
        .context("the program has no constants")?;
    kernel.configure(config);
    stacks.configure(config);
    filter.configure(&kernel, config);
    config.want_thread_ends = arguments.clocks.is_some() || arguments.output.capture;
    targets.configure(
        &kernel,
        config,
        &mut open.maps.target_pids,
        &mut open.maps.target_tids,
    )?;
    loader::size_thread_map(&mut open.maps.threads)?;
    loader::size_unwind_maps(
        targets.is_everything(),
        &mut open.maps.unwind_pages,
        &mut open.maps.unwind_mappings,
        &mut open.maps.unwind_processes,
    )?;

    let mut program = open.load().context("cannot load the BPF program")?;
    let program = loader::clock_program!(program);
    let mut session = ClockSession::attach(program, &kernel, &targets, stacks)?;
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

    let collected = session.close(stop, |thread: &Thread, tally| {
        let counts = filter.admits(tally.longest, thread.off_state);
        counts.then_some((tally, WAKER_MISSED))
    })?;
    let states = arguments.states;
    let named = collected.name("offcputime", Unit::Nanoseconds, WakersShown::No, |tally| {
        let weight = |value| Weight {
            value,
            events: tally.events,
            longest: tally.longest,
        };
        if states {
            vec![
                (Some(State::Blocked), weight(tally.blocked)),
                (Some(State::Runnable), weight(tally.runnable)),
            ]
        } else {
            vec![(None, weight(tally.blocked + tally.runnable))]
        }
    });
    Ok(named)
}

fn header(arguments: &Arguments) -> String {
    let unit = if arguments.nanoseconds { "ns" } else { "us" };
    let subject = arguments.subject();
    let stacks = arguments.stacks.subject();
    format!("Tracing off-CPU time ({unit}) of {subject} by {stacks} stack... Hit Ctrl-C to end.")
}
