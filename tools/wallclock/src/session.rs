//! One measurement: attaches both children, runs one window, and takes both results.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use anyhow::{Context, bail};
use cli::{
    DebuginfodChoice, HeldCommand, Measured, Patience, Recorder, Request, RequestedTargets,
    Signals, StartAt, monotonic_ns, sleep_until,
};
use profile::Ending;
use report::{Cpus, EventLoop, Goroutines};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::arguments::Arguments;
use crate::children::{Child, Outcome};
use crate::cpus::CpuTimes;
use crate::event_loops::LoopRecorder;
use crate::goroutines::GoroutineRecorder;
use crate::progress::Progress;
use crate::targets::Targets;

/// Maximum time that the children may take to attach.
const ATTACH_LIMIT: Duration = Duration::from_secs(60);
/// Maximum sleep before wallclock checks the children, the targets and the signals again.
const LONGEST_PATIENCE: Duration = Duration::from_secs(1);
/// Time between the order and the window's start, and between the order and an early end. Within
/// this time both children receive the order, and read the state of all threads before the start.
const LEAD_NS: u64 = 20_000_000;

/// Error of a measurement that the user interrupted before it began.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("interrupted before measuring began; nothing was written")
    }
}

impl Error for Interrupted {}

/// Results of a measurement.
pub(crate) struct Measurement {
    pub(crate) on_cpu: Outcome,
    pub(crate) off_cpu: Outcome,
    /// Length of the window.
    pub(crate) measured: Duration,
    pub(crate) ending: Ending,
    /// Times of the CPUs, if they could be read.
    pub(crate) cpus: Option<Cpus>,
    /// Event loops of the targets that have one.
    pub(crate) event_loops: Vec<EventLoop>,
    /// Goroutines of the targets that are Go programs.
    pub(crate) goroutines: Vec<Goroutines>,
    /// True if the measurement ended only because a recorder was asked to write.
    pub(crate) is_to_go_on: bool,
}

impl Measurement {
    /// Returns the results on the CPU and off it, in this order.
    pub(crate) fn outcomes(&self) -> [&Outcome; 2] {
        [&self.on_cpu, &self.off_cpu]
    }
}

/// Measures the targets with the flags of the command line.
///
/// # Errors
/// A child cannot be run or fails, or the user interrupts before the window opens.
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
        loops: loop_recorder(arguments, &targets.pids),
        goroutines: goroutine_recorder(arguments, &targets.pids),
        is_tree: arguments.command.follows_children() || !targets.awaited.is_empty(),
        targets,
        cpus: CpuTimes::new(arguments.all),
        signals,
        progress: Progress::new(command.is_none() && arguments.recorder().is_none()),
        is_to_write: false,
        recorder: arguments.recorder(),
    };
    let attaching = Patience::begin("wallclock", "attaching");
    session.wait_until("attached", Child::is_ready)?;
    drop(attaching);
    let start = session.await_start(arguments.start_at)?;
    let (measured, ending) = session.run(start, arguments.duration(), command)?;
    let is_to_go_on = session.is_to_write && !signals.arrived();
    let event_loops = session.loops.map(LoopRecorder::finish).unwrap_or_default();
    let goroutines = session.goroutines.map(GoroutineRecorder::finish);
    let [Some(mut on_cpu), Some(off_cpu)] = session.outcomes else {
        bail!("oncputime or offcputime left no result");
    };
    if arguments.recorder().is_some() {
        // offcputime keeps more rows, so its recording may reach less far.
        let start_ns = off_cpu.profile.meta.window.start_ns;
        on_cpu.profile.keep_timed_samples_since(start_ns);
    }
    let clocks = off_cpu.profile.threads.iter().map(|thread| thread.clock);
    let ran_ns = clocks.map(|clock| clock.running_ns).sum();
    // The CPUs were read at the start of the window, and a recording starts later.
    let is_whole = arguments.recorder().is_none();
    let cpus = is_whole.then(|| session.cpus.between(ran_ns)).flatten();
    Ok(Measurement {
        on_cpu,
        off_cpu,
        measured,
        ending,
        cpus,
        event_loops,
        goroutines: goroutines.unwrap_or_default(),
        is_to_go_on,
    })
}

/// Returns the recorder of the targets' event loops, if they have any. A recorder of the last
/// seconds does not know when its window starts.
fn loop_recorder(arguments: &Arguments, pids: &[u32]) -> Option<LoopRecorder> {
    if arguments.recorder().is_some() {
        return None;
    }
    match LoopRecorder::attach(pids) {
        Ok(recorder) => recorder,
        Err(error) => {
            cli::say(format_args!(
                "wallclock: the report has no event loops: {error:#}"
            ));
            None
        }
    }
}

/// Returns the recorder of goroutines, if the flags ask for one. A recorder of the last seconds does
/// not know when its window starts.
fn goroutine_recorder(arguments: &Arguments, pids: &[u32]) -> Option<GoroutineRecorder> {
    let rate = arguments.goroutine_rate;
    let is_wanted = rate > 0 && arguments.recorder().is_none();
    let are_commands = arguments.command.is_given();
    is_wanted.then(|| GoroutineRecorder::prepare(pids, are_commands, rate))
}

/// Starts oncputime and offcputime, each once for all targets.
fn spawn(arguments: &Arguments, targets: &Targets) -> anyhow::Result<[Child; 2]> {
    let on_cpu = Measured::OnCpu {
        frequency: arguments.frequency,
    };
    let off_cpu = Measured::OffCpu {
        min_block_us: arguments.min_block_us,
        short_are_sampled: arguments.min_block_us > 0 && arguments.recorder().is_none(),
    };
    // One of the tools fetches a debug file, and the other finds it in the cache.
    let debuginfod = cli::check_debuginfod("wallclock", &arguments.debuginfod.choice())?;
    let spawn = |measured| Child::spawn(&request(arguments, targets, &debuginfod, measured));
    Ok([spawn(on_cpu)?, spawn(off_cpu)?])
}

/// Returns the request for one child.
fn request(
    arguments: &Arguments,
    targets: &Targets,
    debuginfod: &DebuginfodChoice,
    measured: Measured,
) -> Request {
    let (wait, cgroups) = (&arguments.wait, &arguments.cgroups);
    let targets = if cgroups.are_given() {
        RequestedTargets::of_cgroups(cgroups, wait, targets.awaits_members)
    } else {
        RequestedTargets::Processes {
            pids: targets.pids.clone(),
            awaited: targets.awaited.clone(),
        }
    };
    Request {
        measured,
        targets,
        children: arguments.command.follows_children(),
        cgroup_map: arguments.maps.cgroups(),
        mount_namespace_map: arguments.maps.mount_namespaces(),
        walking: arguments.walk.walking(),
        sources: arguments.frames.sources(),
        debuginfod: debuginfod.clone(),
        timeline_min_us: arguments.timeline_min_us(),
        recorder: arguments.recorder().map(|it| recorder(it, measured)),
    }
}

/// Returns the recorder of one child. Both children share the memory, and offcputime has the
/// triggers.
fn recorder(recorder: Recorder, measured: Measured) -> Recorder {
    /// Share of the memory that oncputime gets.
    const ON_CPU_SHARE: u64 = 4;
    let on_cpu_bytes = recorder.max_bytes / ON_CPU_SHARE;
    match measured {
        Measured::OnCpu { .. } => Recorder {
            max_bytes: on_cpu_bytes,
            triggers: Vec::new(),
            ..recorder
        },
        Measured::OffCpu { .. } => Recorder {
            max_bytes: recorder.max_bytes - on_cpu_bytes,
            ..recorder
        },
    }
}

struct Session<'a> {
    children: [Child; 2],
    outcomes: [Option<Outcome>; 2],
    targets: Targets,
    /// True if processes other than the named processes may be targets: descendants or awaited
    /// processes.
    is_tree: bool,
    cpus: CpuTimes,
    loops: Option<LoopRecorder>,
    goroutines: Option<GoroutineRecorder>,
    signals: &'a Signals,
    progress: Progress,
    /// True if a recorder was asked to write.
    is_to_write: bool,
    recorder: Option<Recorder>,
}

impl Session<'_> {
    /// Waits until `is_reached` holds for both children, before they measure. `state` names the
    /// state in the error.
    fn wait_until(&mut self, state: &str, is_reached: fn(&Child) -> bool) -> anyhow::Result<()> {
        let deadline = after(monotonic_ns(), ATTACH_LIMIT);
        while !self.children.iter().all(is_reached) {
            self.collect()?;
            if self.outcomes.iter().any(Option::is_some) {
                bail!(
                    "oncputime or offcputime ended before it was told to start; \
                     install both and wallclock of the same version"
                );
            }
            if self.signals.arrived() {
                bail!(Interrupted);
            }
            if monotonic_ns() >= deadline {
                bail!(
                    "oncputime and offcputime were not {state} after {} s; try again when the machine has less load",
                    ATTACH_LIMIT.as_secs()
                );
            }
            self.wait(LONGEST_PATIENCE, true)?;
        }
        Ok(())
    }

    /// Waits until shortly before the requested multiple of wall-clock time, if there is one.
    /// Returns the time at which the window starts.
    fn await_start(&mut self, start_at: Option<StartAt>) -> anyhow::Result<u64> {
        let Some(start_at) = start_at else {
            return Ok(monotonic_ns() + LEAD_NS);
        };
        let start = start_at.next(LEAD_NS);
        loop {
            let left = start.saturating_sub(monotonic_ns()).saturating_sub(LEAD_NS);
            if left == 0 {
                return Ok(start);
            }
            if self.signals.arrived() {
                bail!(Interrupted);
            }
            self.wait(Duration::from_nanos(left).min(LONGEST_PATIENCE), true)?;
        }
    }

    /// Runs the window, and waits until both children have hung up. The command starts with the
    /// window. Returns the window's length and the reason of its end.
    fn run(
        &mut self,
        mut start: u64,
        duration: Option<Duration>,
        command: Option<&mut HeldCommand>,
    ) -> anyhow::Result<(Duration, Ending)> {
        let end = |start| duration.map_or(u64::MAX, |duration| after(start, duration));
        let mut are_awaited = self.targets.are_awaited();
        let mut stop = if are_awaited { u64::MAX } else { end(start) };
        let mut ending = Ending::Elapsed;
        for child in &mut self.children {
            child.send(&format!("start {start}\nstop {stop}"));
        }
        self.progress.begin(duration.unwrap_or_default());
        if let Some(command) = command {
            // The command may end before a child that receives the order late starts to measure.
            self.wait_until("ready to measure", Child::is_open)?;
            sleep_until(start);
            command.release().context("cannot let the command run")?;
        }
        if let Some(recorder) = &self.recorder {
            cli::say(format_args!(
                "Recording the last {} s of every thread; SIGUSR1 writes it... Hit Ctrl-C to end.",
                recorder.length_ns as f64 / 1e9
            ));
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
                self.send_stop(stop);
            }
            let may_end_early = ending == Ending::Elapsed && now < stop;
            if may_end_early {
                self.is_to_write |= self.signals.take_request_to_write();
                let triggered = self.children.iter().find_map(Child::triggered);
                if let Some(wait) = triggered {
                    cli::say(format_args!("wallclock: {wait}"));
                }
                if self.signals.arrived() || self.is_to_write || triggered.is_some() {
                    ending = Ending::Interrupted;
                } else if !are_awaited && self.has_ended() {
                    ending = Ending::TargetGone;
                }
                if ending != Ending::Elapsed {
                    stop = stop.min(now.max(start) + LEAD_NS);
                    self.send_stop(stop);
                }
            }
            let passed = if may_end_early {
                now.saturating_sub(start)
            } else {
                u64::MAX
            };
            self.progress.advance(Duration::from_nanos(passed));
            // The start of a window that awaits a target is not known yet.
            let patience = if are_awaited {
                LONGEST_PATIENCE
            } else {
                self.read_cpus(start, stop)?
            };
            // If no signal or target can end the window sooner, only the children matter.
            self.wait(patience, may_end_early)?;
            self.collect()?;
        }
        self.read_cpus(start, stop)?;
        Ok((Duration::from_nanos(stop - start), ending))
    }

    fn send_stop(&mut self, stop: u64) {
        for child in &mut self.children {
            child.send(&format!("stop {stop}"));
        }
    }

    /// Returns the time at which the first awaited target appeared, once both children have
    /// reported it.
    fn first(&self) -> Option<u64> {
        let [one, other] = self.children.each_ref().map(Child::first);
        Some(one?.min(other?))
    }

    /// Returns whether no target is left. The children keep track of descendants.
    fn has_ended(&mut self) -> bool {
        let have_named_ended = self.targets.remove_ended();
        have_named_ended && (!self.is_tree || self.children.iter().any(Child::has_no_targets))
    }

    /// Reads the times of the CPUs at the window's edges. Returns the time until the next reading.
    fn read_cpus(&mut self, start: u64, stop: u64) -> anyhow::Result<Duration> {
        self.cpus.read(start, stop)?;
        let now = monotonic_ns();
        let mut patience = self.cpus.patience(now, start, stop);
        if let Some(goroutines) = &mut self.goroutines {
            if now >= start {
                goroutines.begin();
            }
            if now >= stop {
                goroutines.end();
            }
            if let Some(pause) = goroutines.find_commands() {
                patience = patience.min(pause);
            }
        }
        if let Some(loops) = &mut self.loops {
            loops.take(start, stop)?;
            patience = patience.min(LoopRecorder::PATIENCE);
        }
        Ok(patience.min(LONGEST_PATIENCE))
    }

    /// Takes the results of the children that have hung up. The failure of one child ends the
    /// measurement, also if the other child succeeds.
    fn collect(&mut self) -> anyhow::Result<()> {
        for (child, outcome) in self.children.iter_mut().zip(&mut self.outcomes) {
            if child.has_hung_up() && outcome.is_none() {
                *outcome = Some(child.finish()?);
            }
        }
        Ok(())
    }

    /// Sleeps until a child sends a line, or `patience` has passed. With `watches_targets` a signal
    /// or the end of a process also ends the sleep.
    fn wait(&mut self, patience: Duration, watches_targets: bool) -> anyhow::Result<()> {
        let until_tick = self
            .progress
            .patience()
            .map_or(patience, |tick| tick.min(patience));
        let timeout = Timespec::try_from(until_tick).context("cannot wait that long")?;
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds = Vec::new();
        let listening = self.children.iter().filter(|child| !child.has_hung_up());
        fds.extend(listening.map(|child| PollFd::new(child, PollFlags::IN)));
        if watches_targets {
            fds.push(PollFd::new(self.signals, PollFlags::IN));
            fds.extend(self.targets.handles().map(readable));
        }
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for the children"),
        }
        for child in &mut self.children {
            child.receive();
        }
        Ok(())
    }
}

fn after(time: u64, duration: Duration) -> u64 {
    let duration = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    time.saturating_add(duration)
}
