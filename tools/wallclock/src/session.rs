//! One measurement: both children attached, one window, both results.

use std::time::Duration;

use anyhow::{Context, bail};
use cli::{HeldCommand, Patience, Signals, monotonic_ns, sleep_until};
use export::report::Cpus;
use profile::Ending;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::arguments::Arguments;
use crate::children::{Child, Outcome};
use crate::cpus::CpuTimes;
use crate::progress::Progress;
use crate::targets::Targets;

/// How long the children may take to attach.
const ATTACH_LIMIT: Duration = Duration::from_secs(60);
/// The longest sleep between two looks at all that may have changed.
const LONGEST_PATIENCE: Duration = Duration::from_secs(1);
/// How far ahead the start is set, and an end that comes early: so that both
/// children hear of it in time, and can read what stands before the start.
const LEAD_NS: u64 = 20_000_000;

/// What was measured.
pub(crate) struct Measurement {
    pub(crate) on_cpu: Outcome,
    pub(crate) off_cpu: Outcome,
    pub(crate) measured: Duration,
    pub(crate) ending: Ending,
    /// What the CPUs did, where that could be read.
    pub(crate) cpus: Option<Cpus>,
}

impl Measurement {
    /// On the CPU, and off it.
    pub(crate) fn outcomes(&self) -> [&Outcome; 2] {
        [&self.on_cpu, &self.off_cpu]
    }
}

/// Measures as the command line says.
///
/// # Errors
/// A child cannot be run or fails, or the user interrupts before there is
/// anything to show.
pub(crate) fn measure(
    arguments: &Arguments,
    targets: Targets,
    command: Option<&mut HeldCommand>,
    signals: &Signals,
) -> anyhow::Result<Measurement> {
    let children = spawn(arguments, &targets)?;
    let mut session = Session {
        children,
        outcomes: [None, None],
        is_tree: arguments.command.follows_children() || !targets.awaited.is_empty(),
        targets,
        cpus: CpuTimes::new(arguments.all),
        signals,
        progress: Progress::new(command.is_none()),
    };
    let attaching = Patience::begin("wallclock", "attaching");
    session.wait_until("attached", Child::is_ready)?;
    drop(attaching);
    let (measured, ending) = session.run(arguments.duration(), command)?;
    let [Some(on_cpu), Some(off_cpu)] = session.outcomes else {
        bail!("oncputime or offcputime left no result");
    };
    let clocks = off_cpu.profile.threads.iter().map(|thread| thread.clock);
    let ran_ns = clocks.map(|clock| clock.running_ns).sum();
    let cpus = session.cpus.between(ran_ns);
    Ok(Measurement {
        on_cpu,
        off_cpu,
        measured,
        ending,
        cpus,
    })
}

/// Starts oncputime and offcputime, each once for all processes and threads: those of the
/// machine, if none are named.
fn spawn(arguments: &Arguments, targets: &Targets) -> anyhow::Result<[Child; 2]> {
    let whom = whom(arguments, targets);
    let whom = whom.iter().map(String::as_str);
    let walk = arguments.walk.arguments();
    let frequency = arguments.frequency.to_string();
    let min_block_us = arguments.min_block_us.to_string();
    let mut all = vec!["--format", "scope"];
    all.extend(walk.iter().map(String::as_str));
    all.extend(arguments.command.follows_children().then_some("--children"));
    let frames = arguments.frames;
    all.extend(frames.srcline.then_some("--srcline"));
    all.extend(frames.inline.then_some("--inline"));
    all.extend(whom);
    let on_cpu = [&["-F", &frequency], &all[..]].concat();
    let mut off_cpu = [&["-m", &min_block_us, "--states"], &all[..]].concat();
    off_cpu.extend((arguments.min_block_us > 0).then_some("--sample-short"));
    Ok([
        Child::spawn("oncputime", &on_cpu)?,
        Child::spawn("offcputime", &off_cpu)?,
    ])
}

/// The children's flags that say whom to measure.
fn whom(arguments: &Arguments, targets: &Targets) -> Vec<String> {
    let (wait, cgroups) = (&arguments.wait, &arguments.cgroups);
    let mut whom = wait.arguments(cgroups, targets.awaits_members);
    let pids: Vec<String> = targets.pids.iter().map(u32::to_string).collect();
    if !pids.is_empty() {
        whom.extend(["-p".to_owned(), pids.join(",")]);
    }
    let awaited = targets.awaited.iter();
    whom.extend(awaited.flat_map(|name| ["--await".to_owned(), name.clone()]));
    whom.extend(arguments.maps.arguments());
    whom
}

struct Session<'a> {
    children: [Child; 2],
    outcomes: [Option<Outcome>; 2],
    targets: Targets,
    /// Whether there may be others than those named: children, or who was waited for.
    is_tree: bool,
    cpus: CpuTimes,
    signals: &'a Signals,
    progress: Progress,
}

impl Session<'_> {
    /// Waits until both children are `so_far`, which is to be before they measure.
    fn wait_until(&mut self, so_far: &str, are: fn(&Child) -> bool) -> anyhow::Result<()> {
        let deadline = after(monotonic_ns(), ATTACH_LIMIT);
        while !self.children.iter().all(are) {
            self.collect()?;
            if self.outcomes.iter().any(Option::is_some) {
                bail!("oncputime or offcputime ended before it was told to start");
            }
            if self.signals.arrived() {
                bail!("interrupted before measuring began; nothing was written");
            }
            if monotonic_ns() >= deadline {
                bail!(
                    "oncputime and offcputime were not {so_far} after {} s; is the machine overloaded?",
                    ATTACH_LIMIT.as_secs()
                );
            }
            self.wait(LONGEST_PATIENCE, true)?;
        }
        Ok(())
    }

    /// Runs the window, at whose start the command begins, and waits until both children
    /// have hung up; says how long the window was and why it ended.
    fn run(
        &mut self,
        duration: Option<Duration>,
        command: Option<&mut HeldCommand>,
    ) -> anyhow::Result<(Duration, Ending)> {
        let mut start = monotonic_ns() + LEAD_NS;
        let end = |start| duration.map_or(u64::MAX, |duration| after(start, duration));
        let mut are_awaited = self.targets.are_awaited();
        let mut stop = if are_awaited { u64::MAX } else { end(start) };
        let mut ending = Ending::Elapsed;
        for child in &mut self.children {
            child.tell(&format!("start {start}\nstop {stop}"));
        }
        self.progress.begin(duration.unwrap_or_default());
        if let Some(command) = command {
            // All of it may be over sooner than a child that hears late looks.
            self.wait_until("ready to measure", Child::is_open)?;
            sleep_until(start);
            command.let_go().context("cannot let the command run")?;
        }
        let mut patience = None;
        while !self.children.iter().all(Child::has_hung_up) {
            let now = monotonic_ns();
            if now >= stop {
                patience.get_or_insert_with(|| Patience::begin("wallclock", "ending"));
            }
            if let (true, Some(first)) = (are_awaited, self.first()) {
                are_awaited = false;
                start = first;
                stop = end(start);
                self.tell_stop(stop);
            }
            let may_end_early = ending == Ending::Elapsed && now < stop;
            if may_end_early {
                if self.signals.arrived() {
                    ending = Ending::Interrupted;
                } else if !are_awaited && self.all_gone() {
                    ending = Ending::TargetGone;
                }
                if ending != Ending::Elapsed {
                    stop = stop.min(now.max(start) + LEAD_NS);
                    self.tell_stop(stop);
                }
            }
            let passed = if may_end_early {
                now.saturating_sub(start)
            } else {
                u64::MAX
            };
            self.progress.advance(Duration::from_nanos(passed));
            // The start of a window that awaits a target is not known yet.
            let patience = match are_awaited {
                true => LONGEST_PATIENCE,
                false => self.look_at_cpus(start, stop)?,
            };
            // Where nothing can end it sooner only the children matter.
            self.wait(patience, may_end_early)?;
            self.collect()?;
        }
        self.look_at_cpus(start, stop)?;
        Ok((Duration::from_nanos(stop - start), ending))
    }

    fn tell_stop(&mut self, stop: u64) {
        for child in &mut self.children {
            child.tell(&format!("stop {stop}"));
        }
    }

    /// When the first target came that was waited for, once both children know.
    fn first(&self) -> Option<u64> {
        let [one, other] = self.children.each_ref().map(Child::first);
        Some(one?.min(other?))
    }

    /// Whether nothing is left to measure. Of what targets have forked the children know.
    fn all_gone(&mut self) -> bool {
        let named = self.targets.all_gone();
        named && (!self.is_tree || self.children.iter().any(Child::sees_nobody))
    }

    /// Reads what the CPUs did at the window's edges; returns for how long nothing has to be
    /// done.
    fn look_at_cpus(&mut self, start: u64, stop: u64) -> anyhow::Result<Duration> {
        self.cpus.look(start, stop)?;
        let patience = self.cpus.patience(monotonic_ns(), start, stop);
        Ok(patience.min(LONGEST_PATIENCE))
    }

    /// Takes the results of the children that have hung up. One that failed
    /// ends the measurement, whatever the other does.
    fn collect(&mut self) -> anyhow::Result<()> {
        for (child, outcome) in self.children.iter_mut().zip(&mut self.outcomes) {
            if child.has_hung_up() && outcome.is_none() {
                *outcome = Some(child.finish()?);
            }
        }
        Ok(())
    }

    /// Sleeps until a child says something, a signal comes or a process ends,
    /// or for `patience`; `outside` says whether to look beyond the children.
    fn wait(&mut self, patience: Duration, outside: bool) -> anyhow::Result<()> {
        let patience = self
            .progress
            .patience()
            .map_or(patience, |tick| tick.min(patience));
        let patience = Timespec::try_from(patience).context("cannot wait that long")?;
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds = Vec::new();
        let listening = self.children.iter().filter(|child| !child.has_hung_up());
        fds.extend(listening.map(|child| PollFd::new(child, PollFlags::IN)));
        if outside {
            fds.push(PollFd::new(self.signals, PollFlags::IN));
            fds.extend(self.targets.handles().map(readable));
        }
        match poll(&mut fds, Some(&patience)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for the children"),
        }
        for child in &mut self.children {
            child.listen();
        }
        Ok(())
    }
}

fn after(time: u64, duration: Duration) -> u64 {
    let duration = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    time.saturating_add(duration)
}
