//! One run of the BPF object, from opening it to its last interval.

use std::os::fd::AsFd;

use anyhow::Context;
use bpf::types::Losses;
use cli::{HeldCommand, Window};
use collect::{NEVER, SpanCollector};
use loader::{Kernel, OpenObject, TargetWatch};
use profile::spans::{Distribution, Kind};

use crate::arguments::Arguments;
use crate::intervals::Intervals;

/// Measures for the length of `window`, and hands each interval to `print`.
pub(crate) fn run(
    arguments: &Arguments,
    window: &mut Window,
    mut command: Option<&mut HeldCommand>,
    mut print: impl FnMut(Distribution) -> anyhow::Result<()>,
) -> anyhow::Result<Losses> {
    let kernel = Kernel::probe()?;
    let targets = arguments.target.targets(command.as_deref());
    let question = arguments.question();

    let mut object = OpenObject::new(&bpf::cpudist::OBJECT)?;
    kernel.configure(&mut object)?;
    targets.configure(&mut object, &kernel)?;
    object.set(bpf::constants::SWITCH_ARGUMENTS, kernel.switch_arguments)?;
    object.set(bpf::constants::INCLUDE_IDLE, arguments.include_idle)?;
    object.set(bpf::constants::WANT_THREAD_ENDS, false)?;
    question.configure(&mut object)?;
    let object = object.load()?;
    let _followers = targets.fill(&object, &kernel)?;
    let mut collector = SpanCollector::attach(&object, question, &targets)?;

    let are_awaited = targets.are_awaited();
    let start = window.begin(are_awaited)?;
    let mut intervals = Intervals::new(start, arguments.interval)?;
    collector.open_window(start, || match are_awaited {
        true => NEVER,
        false => intervals.next_end(start.max(cli::monotonic_ns()), window.stop()),
    })?;
    cli::sleep_until(start);
    if let Some(command) = &mut command {
        command.let_go().context("cannot let the command run")?;
    }
    collector.seed()?;
    if are_awaited {
        cli::say(format_args!(
            "Waiting for {}... Hit Ctrl-C to give up.",
            arguments.target.subject()
        ));
        let came = targets.first_awaited(&object)?;
        let first = window.await_first(&intervals, Window::LONGEST_PATIENCE, || {
            collector.take()?;
            Ok(came.get())
        })?;
        // Nobody was measured before.
        intervals = Intervals::new(first, arguments.interval)?;
        collector.end_sooner(|| intervals.next_end(cli::monotonic_ns(), window.stop()))?;
    }
    cli::say(header(question.kind));

    let end = command.as_deref().map(AsFd::as_fd);
    let mut watch = TargetWatch::new(&targets, &object);
    window.follow(&intervals, end, |stop| {
        let next_end = || intervals.next_end(cli::monotonic_ns(), stop);
        // As soon as it is known when the window stops.
        collector.end_sooner(next_end)?;
        let is_over = collector.end() <= cli::monotonic_ns();
        let is_last = stop.is_some_and(|stop| stop <= collector.end());
        if is_over && !is_last {
            print(collector.next_interval(next_end)?)?;
        }
        intervals.wake_at(collector.end())?;
        collector.take()?;
        Ok(watch.lives()?.then_some(Window::LONGEST_PATIENCE))
    })?;
    // It ends a little after the window where there was not enough notice.
    cli::sleep_until(collector.end());
    let (last, losses) = collector.finish()?;
    print(last)?;
    Ok(losses)
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
