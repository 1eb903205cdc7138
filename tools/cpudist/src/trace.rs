//! One run of the BPF program, from opening it to its last interval.

use std::mem::MaybeUninit;

use anyhow::Context;
use bpf::cpudist::{CpudistSkelBuilder, OpenCpudistSkel, types::rodata};
use bpf::spans;
use bpf::types::Losses;
use libbpf_rs::OpenMapMut;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use loader::{Kernel, Question, SpanCollector, SpanMaps, SpanPrograms, TargetWatch};
use profile::spans::{Apart, Distribution, Kind, Scale};

use crate::arguments::Arguments;
use crate::intervals::{Intervals, NEVER};

/// Measures for the length of `window`, and hands each interval to `print`.
pub(crate) fn run(
    arguments: &Arguments,
    window: &mut cli::Window,
    mut print: impl FnMut(&Distribution) -> anyhow::Result<()>,
) -> anyhow::Result<Losses> {
    let kernel = Kernel::probe()?;
    let targets = arguments.target.targets();
    let question = arguments.question();

    let mut object = MaybeUninit::uninit();
    let mut open = CpudistSkelBuilder::default().open(&mut object)?;
    let config = open
        .maps
        .rodata_data
        .as_deref_mut()
        .context("the program has no constants")?;
    kernel.configure(config);
    config.switch_arguments = kernel.switch_arguments;
    config.include_idle = arguments.include_idle;
    config.want_thread_ends = false;
    set_question(config, &question);
    targets.configure(
        &kernel,
        config,
        &mut open.maps.target_pids,
        &mut open.maps.target_tids,
    )?;
    leave_out(&mut open, &question)?;

    let mut program = open.load().context("cannot load the BPF program")?;
    let maps = &mut program.maps;
    let progs = &program.progs;
    targets.fill(
        &kernel,
        &maps.target_pids,
        &maps.target_tids,
        &progs.list_threads,
    )?;
    let mut tracepoints = if question.kind == Kind::Running {
        vec![&progs.switch_running]
    } else {
        vec![
            &progs.sched_switch,
            &progs.sched_wakeup_new,
            &progs.sched_process_exec,
        ]
    };
    if asks_for_wakeups(question.kind) {
        tracepoints.push(&progs.sched_waking);
    }
    if question.apart.is_some() {
        tracepoints.push(&progs.note_name);
    }
    let links = loader::attach(&tracepoints)?;

    let state = maps
        .bss_data
        .as_deref_mut()
        .context("the program has no variables")?;
    let mut collector = SpanCollector::new(
        question,
        SpanMaps {
            counts: &maps.span_counts,
            sums_even: &maps.sums_even,
            sums_odd: &maps.sums_odd,
            recent: &maps.recent_sums,
            returned: &maps.returned,
            ended_owners: &maps.ended_owners,
        },
        SpanPrograms {
            visit_cpu: &progs.visit_cpu,
            seed_clocks: &progs.seed_clocks,
            read_waiting: &progs.read_waiting,
        },
        state,
    );

    let start = window.begin()?;
    let intervals = Intervals::new(start, arguments.interval)?;
    collector.open_window(start, intervals.next_end(start, window.stop()));
    cli::sleep_until(start);
    collector.seed()?;
    eprintln!("{}", header(question.kind));

    let mut watch = TargetWatch::new(&targets);
    window.follow(&intervals, |stop| {
        let next_end = || intervals.next_end(cli::monotonic_ns(), stop);
        // As soon as it is known when the window stops.
        let sooner = next_end();
        if sooner < collector.end() {
            collector.end_at(sooner);
        }
        let is_over = collector.end() <= cli::monotonic_ns();
        let is_last = stop.is_some_and(|stop| stop <= collector.end());
        if is_over && !is_last {
            print(&collector.next_interval(next_end)?)?;
        }
        intervals.wake_at(collector.end())?;
        collector.take()?;
        Ok(watch.lives())
    })?;
    // It ends a little after the window where there was not enough notice.
    cli::sleep_until(collector.end());
    let last = collector.next_interval(|| NEVER)?;
    drop(links);
    print(&last)?;
    Ok(collector.losses())
}

/// Whether it matters when a thread off the CPU is woken.
fn asks_for_wakeups(kind: Kind) -> bool {
    matches!(kind, Kind::Blocked | Kind::Runnable)
}

/// Tells the program what to count.
fn set_question(config: &mut rodata, question: &Question) {
    config.in_milliseconds = question.scale == Scale::Milliseconds;
    config.span_owner = match question.apart {
        None => spans::OWNER_NONE,
        Some(Apart::Processes) => spans::OWNER_PROCESS,
        Some(Apart::Threads) => spans::OWNER_THREAD,
    };
    config.span_kind = match question.kind {
        Kind::Running => spans::SPANS_RUNNING,
        Kind::OffCpu => spans::SPANS_OFF_CPU,
        Kind::Blocked => spans::SPANS_BLOCKED,
        Kind::Runnable => spans::SPANS_RUNNABLE,
    };
}

/// Neither loads programs nor makes room for what the question does not need.
fn leave_out(open: &mut OpenCpudistSkel<'_>, question: &Question) -> anyhow::Result<()> {
    let running = question.kind == Kind::Running;
    let progs = &mut open.progs;
    progs.switch_running.set_autoload(running);
    progs.sched_switch.set_autoload(!running);
    progs
        .sched_waking
        .set_autoload(asks_for_wakeups(question.kind));
    progs.sched_wakeup_new.set_autoload(!running);
    progs.sched_process_exec.set_autoload(!running);
    progs.seed_clocks.set_autoload(!running);
    progs.read_waiting.set_autoload(!running);
    progs.note_name.set_autoload(question.apart.is_some());

    let maps = &mut open.maps;
    if running {
        shrink(&mut [&mut maps.threads, &mut maps.returned])?;
    } else {
        loader::size_thread_map(&mut maps.threads)?;
        loader::size_thread_map(&mut maps.returned)?;
    }
    if question.apart.is_none() {
        shrink(&mut [
            &mut maps.sums_even,
            &mut maps.sums_odd,
            &mut maps.ended_owners,
        ])?;
    }
    // Messages are for stacks and for accounts.
    maps.events
        .set_max_entries(4096)
        .context("cannot size the ring buffer")
}

fn shrink(maps: &mut [&mut OpenMapMut<'_>]) -> anyhow::Result<()> {
    for map in maps {
        map.set_max_entries(1).context("cannot size a map")?;
    }
    Ok(())
}

fn header(kind: Kind) -> String {
    let what = match kind {
        Kind::Running => "on-CPU",
        Kind::OffCpu => "off-CPU",
        Kind::Blocked => "blocked",
        Kind::Runnable => "run queue",
    };
    format!("Tracing {what} time... Hit Ctrl-C to end.")
}
