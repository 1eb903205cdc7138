//! One measurement: both children attached, one window, both results.

use std::time::Duration;

use anyhow::{Context, bail};
use cli::{Signals, monotonic_ns};
use profile::Ending;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::arguments::Arguments;
use crate::children::{Child, Outcome};
use crate::progress::Progress;
use crate::targets::Targets;

/// How long the children may take to attach.
const ATTACH_LIMIT: Duration = Duration::from_secs(60);
/// How far ahead the start is set, and an end that comes early: so that both
/// children hear of it in time, and can read what stands before the start.
const LEAD_NS: u64 = 20_000_000;

/// What was measured.
pub(crate) struct Measurement {
    pub(crate) on_cpu: Outcome,
    pub(crate) off_cpu: Outcome,
    pub(crate) measured: Duration,
    pub(crate) ending: Ending,
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
pub(crate) fn measure(arguments: &Arguments, targets: Targets) -> anyhow::Result<Measurement> {
    let signals = Signals::install().context("cannot watch for signals")?;
    let children = spawn(arguments, &targets.pids)?;
    let mut session = Session {
        children,
        outcomes: [None, None],
        targets,
        signals,
        progress: Progress::new(),
    };
    session.attach()?;
    let (measured, ending) = session.run(arguments.duration)?;
    let [Some(on_cpu), Some(off_cpu)] = session.outcomes else {
        bail!("oncputime or offcputime left no result");
    };
    Ok(Measurement {
        on_cpu,
        off_cpu,
        measured,
        ending,
    })
}

/// Starts oncputime and offcputime, each once for all processes and threads.
fn spawn(arguments: &Arguments, pids: &[u32]) -> anyhow::Result<[Child; 2]> {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let pids = pids.join(",");
    let frequency = arguments.frequency.to_string();
    let min_block_us = arguments.min_block_us.to_string();
    let mut all = vec!["--format", "scope", "--call-graph", &arguments.call_graph];
    let frames = arguments.frames;
    all.extend(frames.srcline.then_some("--srcline"));
    all.extend(frames.inline.then_some("--inline"));
    let on_cpu = [&["-p", &pids, "-F", &frequency], &all[..]].concat();
    let off_cpu = [&["-p", &pids, "-m", &min_block_us, "--states"], &all[..]].concat();
    Ok([
        Child::spawn("oncputime", &on_cpu)?,
        Child::spawn("offcputime", &off_cpu)?,
    ])
}

struct Session {
    children: [Child; 2],
    outcomes: [Option<Outcome>; 2],
    targets: Targets,
    signals: Signals,
    progress: Progress,
}

impl Session {
    /// Waits until both children are attached.
    fn attach(&mut self) -> anyhow::Result<()> {
        let deadline = after(monotonic_ns(), ATTACH_LIMIT);
        while !self.children.iter().all(Child::is_ready) {
            self.collect()?;
            if self.outcomes.iter().any(Option::is_some) {
                bail!("oncputime or offcputime ended before it was told to start");
            }
            if self.signals.arrived() {
                bail!("interrupted before measuring began; nothing was written");
            }
            let now = monotonic_ns();
            if now >= deadline {
                bail!(
                    "oncputime and offcputime were not attached after {} s; is the machine overloaded?",
                    ATTACH_LIMIT.as_secs()
                );
            }
            self.wait(Duration::from_nanos(deadline - now), true)?;
        }
        Ok(())
    }

    /// Runs the window and waits until both children have hung up; says how
    /// long the window was and why it ended.
    fn run(&mut self, duration: Duration) -> anyhow::Result<(Duration, Ending)> {
        let start = monotonic_ns() + LEAD_NS;
        let mut stop = after(start, duration);
        let mut ending = Ending::Elapsed;
        for child in &mut self.children {
            child.tell(&format!("start {start}\nstop {stop}"));
        }
        self.progress.begin(duration);
        while !self.children.iter().all(Child::has_hung_up) {
            let now = monotonic_ns();
            if ending == Ending::Elapsed && now < stop {
                if self.signals.arrived() {
                    ending = Ending::Interrupted;
                } else if self.targets.all_gone() {
                    ending = Ending::TargetGone;
                }
                if ending != Ending::Elapsed {
                    stop = stop.min(now.max(start) + LEAD_NS);
                    for child in &mut self.children {
                        child.tell(&format!("stop {stop}"));
                    }
                }
            }
            let passed = if now < stop {
                now.saturating_sub(start)
            } else {
                u64::MAX
            };
            self.progress.advance(Duration::from_nanos(passed));
            // After the stop only the children matter.
            self.wait(Duration::from_secs(1), now < stop)?;
            self.collect()?;
        }
        self.progress.clear();
        Ok((Duration::from_nanos(stop - start), ending))
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
            fds.push(PollFd::new(&self.signals, PollFlags::IN));
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
