//! Run of a tool that counts by stack: the steps that all these tools share, in order.

use std::os::fd::AsFd;
use std::os::unix::process::parent_id;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use bpf::types::Tally;
use collect::{Collected, Session, StackChoice, WakersShown};
use debuginfod::Fetcher;
use export::Written;
use loader::{Kernel, LoadedObject, OpenObject, TargetWatch, Targets};
use profile::{Meta, Profile, State, Unit, Weight};

use crate::debug_files;
use crate::error::say;
use crate::goroutines::{GoroutineFlags, Goroutines};
use crate::meta;
use crate::output::streamed::StreamedCapture;
use crate::recording::{self, Triggers};
use crate::{
    CommandLine, ControlFlags, DebuginfodFlags, Destinations, DurationFlags, HeldCommand, Next,
    Output, OutputFlags, Planned, TargetFlags, Window, conclude, nobody_named, run,
};

/// Flags that every tool that counts by stack has.
pub struct CommonFlags<'a> {
    /// Targets of the measurement.
    pub target: &'a TargetFlags,
    /// Output formats and destinations.
    pub output: &'a OutputFlags,
    /// Length of the window.
    pub duration: &'a DurationFlags,
    /// Socket to a controlling parent, if there is one.
    pub control: &'a ControlFlags,
    /// Choice of servers with debug files.
    pub debuginfod: &'a DebuginfodFlags,
    /// True if times are written in nanoseconds instead of microseconds.
    pub nanoseconds: bool,
}

/// The parts that differ between tools: flags, BPF object, and unit of the samples.
pub trait StackTool: clap::Parser {
    /// Name of the tool in messages and in profiles.
    const NAME: &'static str;
    /// BPF object that the tool loads.
    const OBJECT: bpf::Object;
    /// Unit of the sample values.
    const UNIT: Unit;
    /// Session that runs the loaded object.
    type Session<'a>: Session
    where
        Self: 'a;

    /// Returns the flags that the tool shares with other tools.
    fn common(&self) -> CommonFlags<'_>;

    /// Checks values against each other and against the machine, which clap cannot do.
    ///
    /// # Errors
    /// A value cannot be used. The error names the first such value and the remedy.
    fn check(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Returns a human-readable description of the targets.
    fn subject(&self) -> String {
        self.common().target.subject()
    }

    /// Returns which stacks the tool captures, and how.
    fn stacks(&self) -> StackChoice;

    /// Sets the constants and map capacities that only this tool's object has.
    ///
    /// # Errors
    /// The object has no constant or map of that name.
    fn configure(&self, object: &mut OpenObject, kernel: &Kernel) -> loader::Result<()>;

    /// Attaches the programs of the object.
    ///
    /// # Errors
    /// The kernel refuses to attach a program.
    fn attach<'a>(
        &'a self,
        object: &'a LoadedObject,
        kernel: &Kernel,
        targets: &'a Targets,
    ) -> loader::Result<Self::Session<'a>>;

    /// Returns the line that the tool prints on stderr when the window opens.
    fn header(&self, session: &Self::Session<'_>) -> String;

    /// Fills in the profile's metadata about how the tool measured.
    fn describe(&self, session: &Self::Session<'_>, meta: &mut Meta);

    /// Returns the weight of a tally in each state. The states are the same for every tally;
    /// the caller drops weights of 0.
    fn weigh(&self, tally: &Tally) -> Vec<(Option<State>, Weight)>;

    /// Returns whether the profile includes the waker of each wait.
    fn wakers_shown(&self) -> WakersShown {
        WakersShown::No
    }

    /// Returns whether the flags exclude samples of the profile.
    fn removes_samples(&self) -> bool {
        self.common().target.thread_name().is_some()
    }

    /// Removes samples from the profile that the flags exclude.
    fn retain(&self, _profile: &mut Profile) {}

    /// Returns outputs in addition to the outputs of [`OutputFlags`].
    fn more_outputs(&self) -> Vec<Planned> {
        Vec::new()
    }

    /// Returns the flags about goroutines, if the tool has them.
    fn goroutines(&self) -> Option<&GoroutineFlags> {
        None
    }

    /// Returns a line for stderr about the sum of all tallies.
    fn remark(&self, _total: &Tally) -> Option<String> {
        None
    }
}

/// Returns the weight of `value` ns out of the `all` ns of a tally of intervals. Each interval is
/// assumed to contain the same share of `value`, so the sum of squares scales with its square.
#[must_use]
pub fn weight_of(value: u64, all: u64, tally: &Tally) -> Weight {
    let part = value as f64 / all.max(1) as f64;
    Weight {
        value,
        events: tally.events,
        longest: tally.longest,
        shortest: tally.shortest,
        squares: (tally.squares as f64 * part * part) as u64,
    }
}

/// Runs a tool from its command line to its exit status: the body of its `main`.
#[must_use]
pub fn run_tool<Tool: StackTool>(command_line: &CommandLine) -> ExitCode {
    run(command_line.called(), || {
        let tool: Tool = command_line.parse()?;
        tool.check()?;
        let CommonFlags {
            target,
            output: flags,
            duration,
            control,
            debuginfod,
            ..
        } = tool.common();
        // A controlling parent has checked the targets. A target that ended since is no error.
        if control.control_fd.is_none() {
            target.validate()?;
            if tool.stacks().unwinds() {
                target.validate_width()?;
            }
        }
        // Standard output comes last: its reader may go away before the files are written.
        let mut plan = tool.more_outputs();
        plan.extend(flags.plan()?);
        loader::check_privileges()?;
        let debug_files = debug_files::fetcher(Tool::NAME, &debuginfod.choice())?;
        process::start_helper();
        let mut command = target.command().start()?;
        let own_files = command
            .as_ref()
            .map(|command| command.plan_files(Tool::NAME, &mut plan));
        let destinations = Destinations::new(plan.clone())?;
        let goroutines = match tool.goroutines() {
            Some(flags) => {
                flags.plan(Tool::NAME, target, tool.stacks().recorder.is_some(), &plan)?
            }
            None => None,
        };
        let mut window = Window::new(
            Tool::NAME,
            duration.get(),
            duration.start_at,
            control.control_fd,
        )?;
        let debug_files = debug_files.as_ref();
        let held = command.as_mut();
        let outcome = if tool.stacks().recorder.is_some() {
            record(&tool, &plan, destinations, &mut window, held, debug_files)
        } else {
            measure_and_write(
                &tool,
                destinations,
                goroutines,
                &mut window,
                held,
                debug_files,
            )
        };
        if outcome.is_ok() {
            for file in own_files.iter().flatten() {
                say(format_args!("{}: wrote `{}`", Tool::NAME, file.display()));
            }
        }
        conclude(command_line.called(), outcome, command, window.signals())
    })
}

/// Records the last part of a window, and writes it at the window's end. After a request to write,
/// starts the next recording, whose files have the next number.
fn record<Tool: StackTool>(
    tool: &Tool,
    plan: &[Planned],
    mut destinations: Destinations,
    window: &mut Window,
    mut command: Option<&mut HeldCommand>,
    debug_files: Option<&Arc<Fetcher>>,
) -> anyhow::Result<()> {
    window.watch_requests_to_write()?;
    let mut recording = 1;
    loop {
        let held = command.as_deref_mut();
        measure_and_write(tool, destinations, None, window, held, debug_files)?;
        if !window.is_to_go_on() || plan.iter().any(|planned| planned.path.is_none()) {
            return Ok(());
        }
        for path in plan.iter().filter_map(|it| it.numbered(recording).path) {
            say(format_args!(
                "{}: wrote `{}`; a new recording starts",
                Tool::NAME,
                path.display()
            ));
        }
        recording += 1;
        window.restart();
        let numbered = plan.iter().map(|planned| planned.numbered(recording));
        destinations = Destinations::new(numbered.collect())?;
    }
}

/// Measures, names the stacks, and writes the profile.
fn measure_and_write<Tool: StackTool>(
    tool: &Tool,
    mut destinations: Destinations,
    mut goroutines: Option<Goroutines>,
    window: &mut Window,
    command: Option<&mut HeldCommand>,
    debug_files: Option<&Arc<Fetcher>>,
) -> anyhow::Result<()> {
    let CommonFlags {
        output: flags,
        nanoseconds,
        ..
    } = tool.common();
    let mut meta = Meta {
        tool: Tool::NAME.into(),
        ..meta::describe_run()
    };
    let stacks = tool.stacks();
    let is_whole = stacks.recorder.is_none() && !tool.removes_samples();
    let streams = stacks.timeline_least_ns.is_some() && is_whole;
    let streamed = streams.then(|| destinations.take_capture()).flatten();
    let sampled = goroutines.as_mut();
    let (collected, streamed) = measure(
        tool,
        window,
        command,
        sampled,
        &mut meta,
        streamed,
        debug_files,
    )?;
    if let (Some(start), Some(recorder)) = (collected.start_ns(), tool.stacks().recorder) {
        let stop = meta.window.start_ns + meta.window.length_ns;
        let measured_ns = meta.window.length_ns;
        meta.window = meta::end_window(meta.window, start, stop);
        if !window.is_controlled() {
            let reach = recording::reach(&recorder, stop.saturating_sub(start), measured_ns);
            say(format_args!("{}: {reach}", Tool::NAME));
        }
    }
    let remark = tool.remark(&collected.total());
    let nobody = collected.unseen_thread_name().map(nobody_named);
    let weigh = |tally: &Tally| tool.weigh(tally);
    if let Some(fetcher) = debug_files {
        debug_files::announce_wait(Tool::NAME, fetcher);
    }
    let mut named = collected.name(Tool::UNIT, tool.wakers_shown(), meta.window, weigh);
    tool.retain(&mut named.profile);
    meta.bursts = std::mem::take(&mut named.profile.meta.bursts);
    named.profile.meta = meta;

    let fetched = debug_files.map(|fetcher| fetcher.take_summary());
    let fetched = fetched.unwrap_or_default();
    let fetched_line = debug_files::describe(&fetched);
    if let Some(line) = &fetched_line {
        window.report(&format!("debuginfod {line}"))?;
    }
    window.report(&named.profile.losses.to_string())?;
    let options = flags.options(nanoseconds);
    // Standard output comes last: its reader may go away before the files are written.
    let (first, last) = match streamed {
        Some(capture) if capture.is_stdout() => (None, Some(capture)),
        other => (other, None),
    };
    let finish = |capture: Option<StreamedCapture>| {
        capture.map_or(Ok(()), |it| it.finish(&named.profile, &named.timeline_keys))
    };
    finish(first)?;
    if let Some(goroutines) = goroutines {
        goroutines.write(&named.profile.meta, &options)?;
    }
    let written = destinations.write(&named.profile, &options)?;
    finish(last)?;
    let left_out = written.iter().filter_map(Written::left_out);
    let lines =
        crate::output::diagnostics::lines(&named.profile, &named.diagnostics, flags.verbose);
    let lines = lines.into_iter().chain(fetched_line);
    let notes = fetched.notes.into_iter().filter(|_| flags.verbose);
    let lines = lines.chain(notes).chain(remark);
    for line in lines.chain(nobody).chain(left_out) {
        say(format_args!("{}: {line}", Tool::NAME));
    }
    Ok(())
}

/// Measures until the window ends, and returns the collected data. The rows of a timeline go to
/// `capture` as they come, if there is one.
fn measure<Tool: StackTool>(
    tool: &Tool,
    window: &mut Window,
    mut command: Option<&mut HeldCommand>,
    goroutines: Option<&mut Goroutines>,
    meta: &mut Meta,
    capture: Option<Output>,
    debug_files: Option<&Arc<Fetcher>>,
) -> anyhow::Result<(Collected, Option<StreamedCapture>)> {
    let sampling = goroutines.map(Goroutines::prepare).transpose()?;
    let kernel = Kernel::probe()?;
    let mut targets = tool.common().target.targets(command.as_deref());
    if window.is_controlled() {
        targets.bystanders.push(parent_id());
    }
    let mut object = OpenObject::new(&Tool::OBJECT)?;
    kernel.configure(&mut object)?;
    targets.configure(&mut object, &kernel)?;
    tool.stacks().configure(&mut object)?;
    tool.configure(&mut object, &kernel)?;
    let object = object.load()?;
    let mut session = tool.attach(&object, &kernel, &targets)?;
    if let Some(fetcher) = debug_files {
        session.with_collector(&mut |it| it.set_debug_files(Arc::<Fetcher>::clone(fetcher)));
    }

    let mut start = window.begin(targets.are_awaited())?;
    session.open_window(start, window.stop());
    window.report("open")?;
    tool.describe(&session, meta);
    meta.targets = tool.subject().into();
    meta.window = meta::begin_window(start);
    meta.timeline_least_ns = tool.stacks().timeline_least_ns;
    let streamed = capture.map(|output| {
        let profile = Profile {
            meta: meta.clone(),
            ..Profile::new(Tool::UNIT)
        };
        StreamedCapture::begin(output, &profile)
    });
    let streamed = streamed.transpose()?;
    if let Some(streamed) = &streamed {
        session.stream_timeline(streamed.sink());
    }
    let release = || command.as_mut().map_or(Ok(()), |command| command.release());
    let started = session.begin(start, release)?;
    started.context("cannot let the command run")?;
    let readiness = session.readiness()?;
    if targets.are_awaited() {
        if !window.is_controlled() {
            say(format_args!(
                "Waiting for {}... Hit Ctrl-C to give up.",
                tool.subject()
            ));
        }
        let first = targets.first_awaited(&object)?;
        start = window.await_first(&readiness, session.take_interval(), || {
            session.take(None)?;
            Ok(first.get())
        })?;
        session.note_first_target(start);
    }
    if !window.is_controlled() {
        say(format_args!(
            "{}... Hit Ctrl-C to end.",
            tool.header(&session)
        ));
    }
    if let Some(goroutines) = &sampling {
        goroutines.begin();
    }
    let end = command.as_deref().map(AsFd::as_fd);
    let mut watch = TargetWatch::new(&targets, &object);
    let mut triggers = Triggers::new(tool.stacks().recorder.as_ref());
    let stop = window.follow(&readiness, end, |stop| {
        session.take(stop)?;
        let next = if watch.lives()? {
            Next::In(session.take_interval())
        } else {
            Next::NoTargets
        };
        Ok(triggers.check(&mut session, next))
    })?;
    if let Some(goroutines) = sampling {
        goroutines.finish();
    }
    meta.window = meta::end_window(meta.window, start, stop);
    Ok((session.close(stop)?, streamed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_as_large_a_part_of_each_interval() {
        let tally = Tally {
            events: 4,
            squares: 400,
            ..Tally::default()
        };
        let squares = |value, all| weight_of(value, all, &tally).squares;
        assert_eq!(
            [squares(10, 10), squares(5, 10), squares(0, 10)],
            [400, 100, 0]
        );
        // A value above `all` gives a larger weight.
        assert_eq!(squares(20, 10), 1600);
        assert_eq!(squares(0, 0), 0);
    }
}
