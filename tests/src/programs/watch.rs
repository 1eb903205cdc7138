//! Runs of tools that attach before the measured events. The test opens and closes the window, so
//! the output covers all events.

use std::collections::BTreeMap;
use std::io;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::programs::tool::PATIENCE;
use crate::programs::workload::scratch;
use crate::{ClockRow, Control, Folded, Line, Running, Tool, now_ns, printed::clocks};

/// Maximum memory of a tool that traces the targets of a test, in KiB.
pub const MAX_RSS_KIB: u64 = 64 * 1024;

/// Time between the message that sets the window's end and this end.
const NOTICE: Duration = Duration::from_millis(50);

/// Running tool that is attached to its targets.
#[derive(Debug)]
pub struct Watch {
    running: Running,
    control: Control,
    folder: TempDir,
    has_clocks: bool,
    per_thread: bool,
    started_ns: u64,
    stops_ns: Option<u64>,
}

/// Results of a tool for its window.
#[derive(Debug)]
pub struct Seen {
    /// Stacks with their values.
    pub folded: Folded,
    /// Time of each thread in each state. Empty unless [`Watch::with_clocks`] attached the tool.
    pub clocks: Vec<ClockRow>,
    /// Counts of losses by name.
    pub lost: BTreeMap<String, u64>,
    /// Output on stderr.
    pub stderr: String,
    /// Time at which the window opened, in ns of CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// Time at which the window closed, in ns of CLOCK_MONOTONIC.
    pub stopped_ns: u64,
}

impl Watch {
    /// Attaches offcputime to a process, with values in ns, as wallclock does.
    pub fn offcputime(pid: u32, arguments: &str) -> Watch {
        Watch::offcputime_of(&[pid], arguments)
    }

    /// Attaches offcputime with the caller's arguments, with values in ns and a file of thread
    /// accounts.
    pub fn with_clocks(tool: Tool) -> Watch {
        Watch::attach(tool.args("--per-thread --states --nanoseconds"), true, true)
    }

    /// Attaches offcputime to several processes, or to the whole machine if `pids` is empty.
    pub fn offcputime_of(pids: &[u32], arguments: &str) -> Watch {
        let tool = Tool::new("offcputime").args(arguments);
        Watch::with_clocks(pids.iter().fold(tool, |tool, &pid| tool.pid(pid)))
    }

    /// Attaches oncputime to a process, as wallclock does.
    pub fn oncputime(pid: u32, arguments: &str) -> Watch {
        let tool = Tool::new("oncputime").pid(pid).args(arguments);
        Watch::attach(tool.args("--per-thread"), false, true)
    }

    /// Attaches offcputime to the whole machine, with values in ns.
    pub fn machine(arguments: &str) -> Watch {
        let tool = Tool::new("offcputime").args(arguments);
        Watch::attach(
            tool.args("--per-thread --states --nanoseconds"),
            false,
            true,
        )
    }

    /// Attaches any tool. It prints values in ns, for each thread.
    pub fn apart(tool: Tool) -> Watch {
        Watch::attach(tool.args("--per-thread --nanoseconds"), false, true)
    }

    /// Attaches any tool. It prints values in its default unit, for each thread.
    pub fn apart_samples(tool: Tool) -> Watch {
        Watch::attach(tool.arg("--per-thread"), false, true)
    }

    /// Attaches any tool. It adds up the stacks of threads with the same name.
    pub fn together(tool: Tool) -> Watch {
        Watch::attach(tool, false, false)
    }

    fn attach(tool: Tool, has_clocks: bool, per_thread: bool) -> Watch {
        let folder = scratch();
        let tool = if has_clocks {
            tool.arg("--clocks").arg(folder.path().join("clocks"))
        } else {
            tool
        };
        // -v prints all details about losses.
        let (running, control) = tool.arg("-v").start_controlled();
        let mut watch = Watch {
            running,
            control,
            folder,
            has_clocks,
            per_thread,
            started_ns: 0,
            stops_ns: None,
        };
        if let Err(error) = watch.control.ready() {
            watch.fail("wait until it is attached", &error);
        }
        watch
    }

    /// Opens the window now.
    pub fn open(&mut self) {
        self.started_ns = now_ns();
        self.control
            .start(self.started_ns)
            .expect("talk to the tool");
        // The tool needs some time to read the message.
        sleep(Duration::from_millis(50));
    }

    /// Returns the process ID of the tool.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Sends the tool a signal.
    pub fn signal(&self, signal: Signal) {
        self.running.signal(signal);
    }

    /// Sets the same window for two tools. It opens in 100 ms.
    pub fn open_together(pair: [&mut Watch; 2], length: Duration) {
        let start = now_ns() + 100_000_000;
        let stop = start + u64::try_from(length.as_nanos()).unwrap();
        for watch in pair {
            watch.started_ns = start;
            watch.stops_ns = Some(stop);
            let control = &mut watch.control;
            let said = control.start(start).and_then(|()| control.stop(stop));
            said.expect("talk to the tool");
        }
    }

    /// Sets the window's end a short time ahead, and waits until then. The tool knows the end
    /// before it comes, and counts nothing after it.
    pub fn stop(&mut self) {
        self.announce_stop();
        sleep(NOTICE);
    }

    /// Sets the window's end, and stops the tool with SIGSTOP shortly before this end. Continues
    /// the tool when `held` has passed since the end. The tool's BPF programs stay attached
    /// meanwhile.
    pub fn stop_held(&mut self, held: Duration) {
        self.announce_stop();
        sleep(NOTICE / 2);
        self.signal(Signal::STOP);
        sleep(NOTICE / 2 + held);
        self.signal(Signal::CONT);
    }

    fn announce_stop(&mut self) {
        let stop = now_ns() + u64::try_from(NOTICE.as_nanos()).unwrap();
        self.stops_ns = Some(stop);
        self.control.stop(stop).expect("talk to the tool");
    }

    /// Returns the time at which the window opened, in ns of CLOCK_MONOTONIC.
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// Closes the window if the window has no end yet, and collects the results.
    ///
    /// # Panics
    ///
    /// Panics if the tool used as much memory as [`MAX_RSS_KIB`], or more. A tool may need more
    /// for the whole machine: see [`Watch::close_however_big`].
    pub fn close(self) -> Seen {
        let (seen, peak_rss_kib) = self.close_however_big();
        assert!(
            peak_rss_kib < MAX_RSS_KIB,
            "the tool held {peak_rss_kib} KiB of memory"
        );
        seen
    }

    /// Closes the window as [`Watch::close`] does, without a bound on memory. Also returns the peak
    /// memory in KiB.
    pub fn close_however_big(mut self) -> (Seen, u64) {
        if self.stops_ns.is_none() {
            self.stop();
        }
        let stopped_ns = self.stops_ns.expect("a window that was closed");
        let lost = match self.control.lost() {
            Ok(lost) => lost,
            Err(error) => self.fail("end the window", &error),
        };
        let finished = self.running.finish_within(PATIENCE).succeeded();
        let parse = if self.per_thread {
            Folded::parse_per_thread
        } else {
            Folded::parse
        };
        let seen = Seen {
            folded: parse(&finished.stdout),
            clocks: if self.has_clocks {
                clocks::read(&self.folder.path().join("clocks"))
            } else {
                Vec::new()
            },
            lost,
            stderr: finished.stderr,
            started_ns: self.started_ns,
            stopped_ns,
        };
        (seen, finished.peak_rss_kib)
    }

    fn fail(self, what: &str, error: &io::Error) -> ! {
        let finished = self.running.finish_within(PATIENCE);
        panic!(
            "{what}: {error}; the tool ended with {:?} or signal {:?} and said:\n{}",
            finished.code, finished.signal, finished.stderr
        );
    }
}

impl Seen {
    /// Returns the length of the window in ns.
    pub fn window_ns(&self) -> u64 {
        self.stopped_ns - self.started_ns
    }

    /// Returns the time in each state of the only thread with this name.
    pub fn clock(&self, comm: &str) -> &ClockRow {
        clocks::named(&self.clocks, comm)
    }

    /// Returns whether the tool reports that it lost nothing. A stack that was cut short is not
    /// lost.
    pub fn is_whole(&self) -> bool {
        self.lost
            .iter()
            .all(|(name, count)| *count == 0 || name == "incomplete_user")
    }

    /// Returns the stacks that the tool captured, without those that it missed. The tool misses a
    /// stack if the machine hides a context switch. It also misses one if a thread wakes up just as
    /// the window opens, before the tool reads the stack. The tool counts both cases.
    ///
    /// # Panics
    ///
    /// Panics if the tool missed more stacks than these counts explain, or more than 0.5 % of the
    /// total.
    #[track_caller]
    pub fn folded_but_missed(&self) -> Folded {
        let is_missing = |line: &Line| line.has("[Missed User Stack]");
        let missing = self.folded.only(is_missing);
        let explained = self.lost["events"] + self.folded.comms().len() as u64;
        assert!(
            self.lost["stacks"] <= explained && missing.total() * 200 <= self.folded.total(),
            "stacks are missing, lost: {:?}{missing}",
            self.lost
        );
        self.folded.only(|line| !is_missing(line))
    }

    /// Checks that the tool lost nothing.
    ///
    /// # Panics
    ///
    /// Panics if the tool lost something.
    pub fn assert_nothing_lost(&self) {
        assert!(self.is_whole(), "lost: {:?}\n{}", self.lost, self.stderr);
    }
}
