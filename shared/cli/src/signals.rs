//! The signals that end a measurement: SIGINT, SIGTERM and SIGHUP.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Watches for the ending signals: the first is noted, the second ends the
/// process at once, with status 128 + signal as a shell would show it.
#[derive(Debug)]
pub struct Signals {
    arrived: Arc<AtomicBool>,
    asks_to_end: Arc<AtomicBool>,
    wake: UnixStream,
}

impl Signals {
    /// Starts to watch. A SIGHUP that the caller ignores (`nohup`) stays ignored.
    ///
    /// # Errors
    /// No file descriptors are left, or the system refuses a handler.
    pub fn install() -> io::Result<Signals> {
        let arrived = Arc::new(AtomicBool::new(false));
        let (wake, waker) = UnixStream::pair()?;
        // First: whoever sees that one has arrived asks once which it was.
        let asks_to_end = Arc::new(AtomicBool::new(false));
        flag::register(SIGTERM, Arc::clone(&asks_to_end))?;
        for signal in ENDING {
            if signal == SIGHUP && is_ignored(signal) {
                continue;
            }
            // Handlers run in this order: the flag that the first signal sets
            // is what makes the second one quit.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&arrived))?;
            flag::register(signal, Arc::clone(&arrived))?;
            low_level::pipe::register(signal, waker.try_clone()?)?;
        }
        Ok(Signals {
            arrived,
            asks_to_end,
            wake,
        })
    }

    /// Watches nothing, so that a test leaves the process's signals alone.
    #[cfg(test)]
    pub(crate) fn that_never_come() -> io::Result<Signals> {
        let (wake, waker) = UnixStream::pair()?;
        // Closed, it would be readable.
        std::mem::forget(waker);
        Ok(Signals {
            arrived: Arc::default(),
            asks_to_end: Arc::default(),
            wake,
        })
    }

    /// Ignores the ending signals, for a process whose parent decides when to end.
    pub fn ignore() {
        for signal in ENDING {
            // SAFETY: SIG_IGN installs no handler, and the signal numbers are valid.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }

    /// Whether a signal has arrived.
    #[must_use]
    pub fn arrived(&self) -> bool {
        self.arrived.load(Ordering::Relaxed)
    }

    /// Whether SIGTERM has arrived, which unlike those of a terminal comes to this process
    /// alone.
    #[must_use]
    pub fn asks_to_end(&self) -> bool {
        self.asks_to_end.load(Ordering::Relaxed)
    }
}

/// Readable from the first signal on; never read it.
impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: all-zero bytes are a valid sigaction, which the call overwrites;
    // a null new action asks for the present one only.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command, Stdio};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    /// The test binary as a process of its own, since signals are per process.
    /// Runs the `#[ignore]`d test named, which prints a line when it is ready.
    fn spawn(name: &str) -> (Child, BufReader<std::process::ChildStdout>) {
        spawn_as(name, libc::SIG_DFL)
    }

    /// The same, with what its caller has SIGHUP do.
    fn spawn_as(
        name: &str,
        hangup: libc::sighandler_t,
    ) -> (Child, BufReader<std::process::ChildStdout>) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--ignored", "--exact", "--nocapture", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0);
        // SAFETY: signal(2) and prctl(2) are safe between fork and exec.
        unsafe {
            command.pre_exec(move || {
                // It is in no group that would be ended with the test.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::signal(SIGHUP, hangup);
                Ok(())
            });
        }
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        await_line(&mut output, "ready");
        (child, output)
    }

    fn await_line(output: &mut impl BufRead, wanted: &str) -> String {
        let mut line = String::new();
        while !line.contains(wanted) {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "no {wanted}");
        }
        line
    }

    fn signal(child: &Child, signal: Signal) {
        kill_process(Pid::from_child(child), signal).unwrap();
    }

    #[test]
    #[ignore = "a process that other tests start"]
    fn helper_watches() {
        let signals = Signals::install().unwrap();
        assert!(!signals.arrived());
        println!("ready");
        let forever = Timespec {
            tv_sec: 20,
            tv_nsec: 0,
        };
        let mut fds = [PollFd::new(&signals, PollFlags::IN)];
        while !signals.arrived() {
            let _ = poll(&mut fds, Some(&forever));
        }
        assert_eq!(poll(&mut fds, Some(&forever)), Ok(1));
        let more = match signals.asks_to_end() {
            true => ", asks to end",
            false => "",
        };
        println!("arrived{more}");
        io::stdout().flush().unwrap();
        // Ends when the test closes our input.
        let _ = io::stdin().read_line(&mut String::new());
    }

    #[test]
    fn first_signal_is_noted_and_wakes_a_poll() {
        for ending in [Signal::INT, Signal::TERM, Signal::HUP] {
            let (mut child, mut output) = spawn("signals::tests::helper_watches");
            signal(&child, ending);
            let line = await_line(&mut output, "arrived");
            assert_eq!(
                line.contains("asks to end"),
                ending == Signal::TERM,
                "{line}"
            );
            drop(child.stdin.take());
            assert!(child.wait().unwrap().success());
        }
    }

    #[test]
    fn a_hangup_that_is_ignored_stays_so() {
        let (mut child, mut output) = spawn_as("signals::tests::helper_watches", libc::SIG_IGN);
        // The second one that counts would end it.
        signal(&child, Signal::HUP);
        signal(&child, Signal::INT);
        await_line(&mut output, "arrived");
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn second_signal_quits() {
        let (mut child, mut output) = spawn("signals::tests::helper_watches");
        signal(&child, Signal::INT);
        await_line(&mut output, "arrived");
        signal(&child, Signal::TERM);
        let status = child.wait().unwrap();
        assert_eq!(
            (status.code(), status.signal()),
            (Some(128 + SIGTERM), None)
        );
    }
}
