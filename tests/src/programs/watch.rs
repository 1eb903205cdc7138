//! A tool attached to a program before anything happens there, with a window
//! that the test opens and closes: what it shows is all of what happened.

use std::collections::BTreeMap;
use std::io;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::programs::tool::PATIENCE;
use crate::programs::workload::scratch;
use crate::{ClockRow, Control, Folded, Line, Running, Tool, now_ns, printed::clocks};

/// No tool may hold more memory than this for the targets of the tests.
pub const MOST_RSS_KIB: u64 = 64 * 1024;

/// How long before the window's end the tool is told of it.
const NOTICE: Duration = Duration::from_millis(50);

/// A tool that is attached.
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

/// What a tool saw in its window.
#[derive(Debug)]
pub struct Seen {
    /// Its stacks.
    pub folded: Folded,
    /// The accounts of threads, of offcputime.
    pub clocks: Vec<ClockRow>,
    /// What it says it lost, by name.
    pub lost: BTreeMap<String, u64>,
    /// What it said on stderr.
    pub stderr: String,
    /// When the window opened, CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// When the window closed, CLOCK_MONOTONIC.
    pub stopped_ns: u64,
}

impl Watch {
    /// offcputime as wallclock runs it, values in nanoseconds.
    pub fn offcputime(pid: u32, arguments: &str) -> Watch {
        Watch::offcputime_of(&[pid], arguments)
    }

    /// offcputime with arguments of the caller's, as wallclock runs it.
    pub fn with_clocks(tool: Tool) -> Watch {
        Watch::attach(tool.args("--per-thread --states --nanoseconds"), true, true)
    }

    /// The same of several processes, or of all of the machine.
    pub fn offcputime_of(pids: &[u32], arguments: &str) -> Watch {
        let tool = Tool::new("offcputime").args(arguments);
        Watch::with_clocks(pids.iter().fold(tool, |tool, &pid| tool.pid(pid)))
    }

    /// oncputime as wallclock runs it.
    pub fn oncputime(pid: u32, arguments: &str) -> Watch {
        let tool = Tool::new("oncputime").pid(pid).args(arguments);
        Watch::attach(tool.args("--per-thread"), false, true)
    }

    /// offcputime on all of the machine, values in nanoseconds.
    pub fn machine(arguments: &str) -> Watch {
        let tool = Tool::new("offcputime").args(arguments);
        Watch::attach(
            tool.args("--per-thread --states --nanoseconds"),
            false,
            true,
        )
    }

    /// Any tool with the arguments it has, values in nanoseconds.
    pub fn apart(tool: Tool) -> Watch {
        Watch::attach(tool.args("--per-thread --nanoseconds"), false, true)
    }

    /// The same of one that samples.
    pub fn apart_samples(tool: Tool) -> Watch {
        Watch::attach(tool.arg("--per-thread"), false, true)
    }

    /// Any tool with the arguments it has, threads of a name taken together.
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
        // All details of what the data are worth.
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
        // Long enough for the tool to have heard it.
        sleep(Duration::from_millis(50));
    }

    /// The tool's process.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Sends the tool a signal.
    pub fn signal(&self, signal: Signal) {
        self.running.signal(signal);
    }

    /// Has two tools look at the same window, one that opens in a moment.
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

    /// Closes the window, with notice, so that the tool counts nothing after it,
    /// and leaves the tool to do the rest.
    pub fn stop(&mut self) {
        self.announce_stop();
        sleep(NOTICE);
    }

    /// The same, but the tool stands still until the window has been over for
    /// `held`: its programs stay attached as long.
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

    /// When the window opened, CLOCK_MONOTONIC.
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// Closes the window, if it does not close by itself, and collects what was
    /// seen in it.
    ///
    /// # Panics
    ///
    /// When the tool held more memory than [`MOST_RSS_KIB`]. A tool that looks at
    /// all of the machine holds what that takes: see [`Watch::close_however_big`].
    pub fn close(self) -> Seen {
        let (seen, peak_rss_kib) = self.close_however_big();
        assert!(
            peak_rss_kib < MOST_RSS_KIB,
            "the tool held {peak_rss_kib} KiB of memory"
        );
        seen
    }

    /// The same of a tool that may hold any amount of memory, and how much it
    /// held at most, in KiB.
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
    /// The length of the window in nanoseconds.
    pub fn window_ns(&self) -> u64 {
        self.stopped_ns - self.started_ns
    }

    /// The account of the only thread with this name.
    pub fn clock(&self, comm: &str) -> &ClockRow {
        clocks::named(&self.clocks, comm)
    }

    /// Whether the tool says that it lost nothing. A stack that was cut short
    /// is not lost.
    pub fn is_whole(&self) -> bool {
        self.lost
            .iter()
            .all(|(name, count)| *count == 0 || name == "incomplete_user")
    }

    /// The stacks but for those that are missing: where the machine hid a
    /// context switch, and where a thread woke up just as the window opened,
    /// before its stack was read. The tool counts them.
    ///
    /// # Panics
    ///
    /// When more are missing than that explains.
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

    /// # Panics
    ///
    /// When the tool lost anything.
    pub fn assert_nothing_lost(&self) {
        assert!(self.is_whole(), "lost: {:?}\n{}", self.lost, self.stderr);
    }
}
