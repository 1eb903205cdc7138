//! One run of the BPF object, from opening it to the last period.

use std::os::fd::AsFd;

use anyhow::Context;
use bpf::types::Losses;
use cli::{HeldCommand, Next, Window};
use collect::{NEVER, SpanCollector};
use loader::{Kernel, OpenObject, TargetWatch};
use profile::spans::{Distribution, Kind};

use crate::arguments::Arguments;
use crate::periods::Periods;

/// Measures until `window` ends, and passes each period to `print`.
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
    let mut periods = Periods::new(start, arguments.period)?;
    collector.open_window(start, || {
        if are_awaited {
            NEVER
        } else {
            periods.next_end(start.max(cli::monotonic_ns()), window.stop())
        }
    })?;
    cli::sleep_until(start);
    if let Some(command) = &mut command {
        command.release().context("cannot let the command run")?;
    }
    collector.seed()?;
    if are_awaited {
        cli::say(format_args!(
            "Waiting for {}... Hit Ctrl-C to give up.",
            arguments.target.subject()
        ));
        let came = targets.first_awaited(&object)?;
        let first = window.await_first(&periods, Window::LONGEST_PATIENCE, || {
            collector.take()?;
            Ok(came.get())
        })?;
        // Nothing was measured before the first target appeared, so periods start there.
        periods = Periods::new(first, arguments.period)?;
        collector.end_sooner(|| periods.next_end(cli::monotonic_ns(), window.stop()))?;
    }
    cli::say(header(question.kind));

    let end = command.as_deref().map(AsFd::as_fd);
    let mut watch = TargetWatch::new(&targets, &object);
    window.follow(&periods, end, |stop| {
        let next_end = || periods.next_end(cli::monotonic_ns(), stop);
        // The present period ends with the window, once the window's end is known.
        collector.end_sooner(next_end)?;
        let is_over = collector.end() <= cli::monotonic_ns();
        let is_last = stop.is_some_and(|stop| stop <= collector.end());
        if is_over && !is_last {
            print(collector.next_interval(next_end)?)?;
        }
        periods.wake_at(collector.end())?;
        collector.take()?;
        Ok(if watch.lives()? {
            Next::In(Window::LONGEST_PATIENCE)
        } else {
            Next::NoTargets
        })
    })?;
    // The last period ends a little after the window if the notice was too short.
    cli::sleep_until(collector.end());
    let (last, losses) = collector.finish()?;
    print(last)?;
    Ok(losses)
}

/// Returns the line that is printed when measuring starts.
fn header(kind: Kind) -> String {
    let what = match kind {
        Kind::Running => "on-CPU",
        Kind::OffCpu => "off-CPU",
        Kind::Blocked => "blocked",
        Kind::Runnable => "run queue",
    };
    format!("Tracing {what} time... Hit Ctrl-C to end.")
}
