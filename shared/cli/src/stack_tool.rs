//! The run of a tool that counts by stack: what all of them do, in its order.

use std::os::fd::AsFd;
use std::os::unix::process::parent_id;
use std::process::ExitCode;

use anyhow::Context;
use bpf::types::Tally;
use collect::{Collected, Session, StackChoice, WakersShown};
use export::Written;
use loader::{Kernel, LoadedObject, OpenObject, TargetWatch, Targets};
use profile::{Meta, Profile, State, Unit, Weight};

use crate::error::say;
use crate::meta;
use crate::{
    CommandLine, ControlFlags, Destinations, DurationFlags, HeldCommand, OutputFlags, Planned,
    TargetFlags, Window, conclude, nobody_named, run,
};

/// The flags that every such tool has.
pub struct CommonFlags<'a> {
    /// Whom to measure.
    pub target: &'a TargetFlags,
    /// What to write, and where.
    pub output: &'a OutputFlags,
    /// How long to measure.
    pub duration: &'a DurationFlags,
    /// Who says when.
    pub control: &'a ControlFlags,
    /// Times are written in nanoseconds.
    pub nanoseconds: bool,
}

/// What is a tool's own: its flags, its BPF object, and what it counts.
pub trait StackTool: clap::Parser {
    /// What it is called.
    const NAME: &'static str;
    /// Its BPF object.
    const OBJECT: bpf::Object;
    /// What it counts.
    const UNIT: Unit;
    /// How its object is run.
    type Session<'a>: Session
    where
        Self: 'a;

    /// Those of its flags that others have, too.
    fn common(&self) -> CommonFlags<'_>;

    /// Checks what clap cannot: values against each other and the machine.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    fn check(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Whom it measures, in words.
    fn subject(&self) -> String {
        self.common().target.subject()
    }

    /// Which stacks are wanted.
    fn stacks(&self) -> StackChoice;

    /// Sets the constants and makes the room that only its object has.
    ///
    /// # Errors
    /// The object has no such thing.
    fn configure(&self, object: &mut OpenObject, kernel: &Kernel) -> loader::Result<()>;

    /// Attaches its object.
    ///
    /// # Errors
    /// What the kernel refuses.
    fn attach<'a>(
        &'a self,
        object: &'a LoadedObject,
        kernel: &Kernel,
        targets: &'a Targets,
    ) -> loader::Result<Self::Session<'a>>;

    /// What it says once it measures.
    fn header(&self, session: &Self::Session<'_>) -> String;

    /// What the profile says of how it measured.
    fn describe(&self, session: &Self::Session<'_>, meta: &mut Meta);

    /// What a tally weighs in each state, the same ones each time; weights of 0 are left out.
    fn weigh(&self, tally: &Tally) -> Vec<(Option<State>, Weight)>;

    /// Whether the profile says who ended each wait.
    fn wakers_shown(&self) -> WakersShown {
        WakersShown::No
    }

    /// Leaves out of what was measured what is not to be shown.
    fn retain(&self, _profile: &mut Profile) {}

    /// What else is written.
    fn more_outputs(&self) -> Vec<Planned> {
        Vec::new()
    }

    /// What there is to say of all that was counted.
    fn remark(&self, _total: &Tally) -> Option<String> {
        None
    }
}

/// The weight of so many nanoseconds of a tally of intervals, whose lengths and their
/// squares are of `all` nanoseconds. The part is taken for as large in each of them.
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

/// A tool's `main`.
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
            ..
        } = tool.common();
        // A parent has looked whether they are there: one that ended since is no error.
        if control.control_fd.is_none() {
            target.validate()?;
            if tool.stacks().unwinds() {
                target.validate_width()?;
            }
        }
        // Standard output, if it is one, comes last: its reader may go.
        let mut plan = tool.more_outputs();
        plan.extend(flags.plan()?);
        loader::check_privileges()?;
        process::start_helper();
        let mut command = target.command().start()?;
        let own_files = command
            .as_ref()
            .map(|command| command.plan_files(Tool::NAME, &mut plan));
        let destinations = Destinations::new(plan)?;
        let mut window = Window::new(Tool::NAME, duration.get(), control.control_fd)?;

        let outcome = measure_and_write(&tool, destinations, &mut window, command.as_mut());
        if outcome.is_ok() {
            for file in own_files.iter().flatten() {
                say(format_args!("{}: wrote `{}`", Tool::NAME, file.display()));
            }
        }
        conclude(command_line.called(), outcome, command, window.signals())
    })
}

/// Measures, names what was counted, and writes it.
fn measure_and_write<Tool: StackTool>(
    tool: &Tool,
    destinations: Destinations,
    window: &mut Window,
    command: Option<&mut HeldCommand>,
) -> anyhow::Result<()> {
    let CommonFlags {
        output: flags,
        nanoseconds,
        ..
    } = tool.common();
    let mut meta = Meta {
        tool: Tool::NAME.into(),
        ..meta::of_this_run()
    };
    let collected = measure(tool, window, command, &mut meta)?;
    let remark = tool.remark(&collected.total());
    let nobody = collected.unseen_thread_name().map(nobody_named);
    let weigh = |tally: &Tally| tool.weigh(tally);
    let mut named = collected.name(Tool::UNIT, tool.wakers_shown(), weigh);
    tool.retain(&mut named.profile);
    meta.bursts = std::mem::take(&mut named.profile.meta.bursts);
    named.profile.meta = meta;

    window.report(&named.profile.losses.to_string())?;
    let options = flags.options(nanoseconds);
    let written = destinations.write(&named.profile, &options)?;
    let left_out = written.iter().filter_map(Written::left_out);
    let lines = crate::diagnostics::lines(&named.profile, &named.diagnostics, flags.verbose);
    let lines = lines.into_iter().chain(remark);
    for line in lines.chain(nobody).chain(left_out) {
        say(format_args!("{}: {line}", Tool::NAME));
    }
    Ok(())
}

/// Measures for the length of the window.
fn measure<Tool: StackTool>(
    tool: &Tool,
    window: &mut Window,
    mut command: Option<&mut HeldCommand>,
    meta: &mut Meta,
) -> anyhow::Result<Collected> {
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

    let mut start = window.begin(targets.are_awaited())?;
    session.open_window(start, window.stop());
    window.report("open")?;
    tool.describe(&session, meta);
    let let_go = || command.as_mut().map_or(Ok(()), |command| command.let_go());
    let started = session.begin(start, let_go)?;
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
        session.first_came(start);
    }
    if !window.is_controlled() {
        say(format_args!(
            "{}... Hit Ctrl-C to end.",
            tool.header(&session)
        ));
    }
    let end = command.as_deref().map(AsFd::as_fd);
    let mut watch = TargetWatch::new(&targets, &object);
    let stop = window.follow(&readiness, end, |stop| {
        session.take(stop)?;
        Ok(watch.lives()?.then(|| session.take_interval()))
    })?;
    meta.targets = tool.subject().into();
    meta.window = meta::window(start, stop);
    Ok(session.close(stop)?)
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
        // What is not a part of them may be longer.
        assert_eq!(squares(20, 10), 1600);
        assert_eq!(squares(0, 0), 0);
    }
}
