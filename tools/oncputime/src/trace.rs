//! One run of the BPF program, from opening it to the named profile.

use std::mem::MaybeUninit;

use anyhow::Context;
use bpf::oncputime::OncputimeSkelBuilder;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use loader::{Collector, Kernel, Named, Rate, Samplers, TargetWatch, WakersShown};
use profile::{Unit, Weight};

use crate::arguments::Arguments;

/// Measures for the length of `window`.
pub(crate) fn run(arguments: &Arguments, window: &mut cli::Window) -> anyhow::Result<Named> {
    let kernel = Kernel::probe()?;
    let targets = arguments.target.targets();
    let stacks = arguments.stacks();

    let mut object = MaybeUninit::uninit();
    let mut open = OncputimeSkelBuilder::default().open(&mut object)?;
    let config = open
        .maps
        .rodata_data
        .as_deref_mut()
        .context("the program has no constants")?;
    kernel.configure(config);
    stacks.configure(config);
    config.include_idle = arguments.include_idle;
    targets.configure(
        &kernel,
        config,
        &mut open.maps.target_pids,
        &mut open.maps.target_tids,
    )?;
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
    let mut samplers = Samplers::attach(
        &progs.sample,
        arguments.event,
        arguments.rate(),
        arguments.cpu,
    )?;

    let unwinder = stacks.unwinder(loader::unwind_maps!(maps));
    let state = maps
        .bss_data
        .as_deref_mut()
        .context("the program has no variables")?;
    let counts = loader::count_maps!(maps);
    let visit_cpu = &progs.visit_cpu;
    let mut collector = Collector::new(counts, visit_cpu, state, unwinder, stacks.per_process)?;
    collector.prepare(&targets, &progs.list_threads)?;

    let start = window.begin()?;
    collector.open_window(start);
    cli::sleep_until(start);
    if !window.is_controlled() {
        eprintln!("{}", header(arguments, &samplers));
    }

    let readiness = collector.readiness()?;
    let mut watch = TargetWatch::new(&targets);
    window.follow(&readiness, |stop| {
        if let Some(stop) = stop {
            collector.close_window(stop);
        }
        collector.take()?;
        samplers.follow_hotplug()?;
        Ok(watch.lives())
    })?;
    drop(samplers);

    let named = collector
        .finish()?
        .name("oncputime", Unit::Samples, WakersShown::No, |tally| {
            let weight = Weight {
                value: tally.events,
                events: tally.events,
                longest: 0,
            };
            vec![(None, weight)]
        });
    Ok(named)
}

fn header(arguments: &Arguments, samplers: &Samplers<'_, '_>) -> String {
    let rate = match arguments.rate() {
        Rate::Frequency(frequency) => format!("at {frequency} Hertz"),
        Rate::Period(period) => format!("every {period} events"),
    };
    format!(
        "Sampling {rate} ({}, {} CPUs) of {} by {} stack... Hit Ctrl-C to end.",
        samplers.event().name,
        samplers.cpus(),
        arguments.target.subject(),
        arguments.stacks.subject(),
    )
}
