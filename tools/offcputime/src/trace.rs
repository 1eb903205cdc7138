//! One run of the BPF program, from opening it to the named profile.

use std::mem::MaybeUninit;

use anyhow::Context;
use bpf::SharedConfig;
use bpf::offcputime::{OffcputimeSkelBuilder, types::rodata};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use loader::{
    Collector, EarlyStacks, Kernel, Named, OffCpuFilter, TargetWatch, ThreadClocks, Unwinder,
};
use profile::{State, Unit, Weight};

use crate::arguments::Arguments;

/// Measures for the length of `window`.
pub(crate) fn run(arguments: &Arguments, window: &mut cli::Window) -> anyhow::Result<Named> {
    let kernel = Kernel::probe()?;
    let targets = arguments.targets();
    let filter = arguments.filter();
    let user = !arguments.stacks.kernel_stacks_only;
    let kernel_side = !arguments.stacks.user_stacks_only;
    let per_thread = arguments.output.per_thread;

    let mut object = MaybeUninit::uninit();
    let mut open = OffcputimeSkelBuilder::default().open(&mut object)?;
    let config = open
        .maps
        .rodata_data
        .as_deref_mut()
        .context("the program has no constants")?;
    kernel.configure(config);
    config.set_stacks(user, kernel_side);
    config.set_call_graph(arguments.call_graph.code());
    config.set_per_thread(per_thread);
    config.switch_arguments = kernel.switch_arguments;
    config.thread_kind = arguments.thread_kind();
    set_filter(config, &filter);
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
    let maps = &mut program.maps;
    let progs = &program.progs;
    targets.fill(
        &kernel,
        &maps.target_pids,
        &maps.target_tids,
        &progs.list_threads,
    )?;
    let links = loader::attach(&[
        &progs.sched_switch,
        &progs.sched_waking,
        &progs.sched_wakeup_new,
        &progs.sched_process_exec,
    ])?;

    let unwinder = user
        .then(|| Unwinder::new(arguments.call_graph, loader::unwind_maps!(maps)))
        .flatten();
    let state = maps
        .bss_data
        .as_deref_mut()
        .context("the program has no variables")?;
    let mut collector = Collector::new(loader::count_maps!(maps), state, unwinder)?;
    collector.prepare(&targets, &progs.list_threads)?;

    if !window.is_controlled() {
        eprintln!("{}", header(arguments));
    }
    let start = window.begin()?;
    collector.open_window(start);
    if let Some(stop) = window.stop() {
        collector.close_window(stop);
    }
    let early = user
        .then(|| {
            EarlyStacks::read(&progs.seed_threads, &collector, || {
                cli::monotonic_ns() < start
            })
        })
        .transpose()?;
    cli::sleep_until(start);
    loader::seed_threads(&progs.seed_threads, &maps.threads, early, &mut collector)?;
    collector.state().set_threads_are_seeded();

    let readiness = collector.readiness()?;
    let mut watch = TargetWatch::new(&targets);
    let stop = window.follow(&readiness, |stop| {
        if let Some(stop) = stop {
            collector.close_window(stop);
        }
        collector.take()?;
        Ok(watch.lives())
    })?;

    let open = ThreadClocks::read_open_intervals(&progs.read_open_intervals)?;
    drop(links);
    let mut collected = collector.finish()?;
    let threads = ThreadClocks::read(&maps.threads, open, stop)?.close(
        &collected.ended,
        &filter,
        per_thread,
        (user, kernel_side),
        &mut collected.totals,
    );
    let states = arguments.states;
    let mut named = collected.name(Unit::Nanoseconds, |tally| {
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
    named.profile.threads = threads;
    Ok(named)
}

/// Hands `filter` to the program: its `state_filter` says how to take the mask.
fn set_filter(config: &mut rodata, filter: &OffCpuFilter) {
    const STATES_ALL: u32 = 0;
    const STATES_RUNNABLE: u32 = 1;
    const STATES_IN_MASK: u32 = 2;

    config.min_interval = filter.min_ns;
    config.max_interval = filter.max_ns;
    (config.state_filter, config.state_mask) = match filter.states {
        None => (STATES_ALL, 0),
        Some(0) => (STATES_RUNNABLE, 0),
        Some(mask) => (STATES_IN_MASK, mask),
    };
}

fn header(arguments: &Arguments) -> String {
    let unit = if arguments.nanoseconds { "ns" } else { "us" };
    let subject = arguments.subject();
    let stacks = arguments.stacks.subject();
    format!("Tracing off-CPU time ({unit}) of {subject} by {stacks} stack... Hit Ctrl-C to end.")
}
