//! The signals that end a measurement: SIGINT, SIGTERM and SIGHUP. SIGUSR1 makes a recorder write.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::{flag, low_level};

const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Watch on the ending signals. The first signal sets a flag. The second one ends the process at
/// once, with the status that a shell would show: 128 + signal.
#[derive(Debug)]
pub struct Signals {
    arrived: Arc<AtomicBool>,
    asks_to_end: Arc<AtomicBool>,
    /// True if SIGUSR1 has arrived since the last look.
    asks_to_write: Arc<AtomicBool>,
    wake: UnixStream,
    waker: UnixStream,
}

impl Signals {
    /// Installs the signal handlers. A SIGHUP that the caller ignores (`nohup`) stays ignored.
    ///
    /// # Errors
    /// The process has no file descriptors left, or the system refuses a handler.
    pub fn install() -> io::Result<Signals> {
        let arrived = Arc::new(AtomicBool::new(false));
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        // This handler runs first, so a caller that sees `arrived` needs to read `asks_to_end` only
        // once.
        let asks_to_end = Arc::new(AtomicBool::new(false));
        flag::register(SIGTERM, Arc::clone(&asks_to_end))?;
        for signal in ENDING {
            if signal == SIGHUP && is_ignored(signal) {
                continue;
            }
            // Handlers run in this order. The first signal sets the flag that makes the second
            // signal end the process.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&arrived))?;
            flag::register(signal, Arc::clone(&arrived))?;
            low_level::pipe::register(signal, waker.try_clone()?)?;
        }
        Ok(Signals {
            arrived,
            asks_to_end,
            asks_to_write: Arc::default(),
            wake,
            waker,
        })
    }

    /// Installs a handler of SIGUSR1, which asks a recorder to write.
    ///
    /// # Errors
    /// The process has no file descriptors left, or the system refuses a handler.
    pub fn watch_requests_to_write(&self) -> io::Result<()> {
        flag::register(SIGUSR1, Arc::clone(&self.asks_to_write))?;
        low_level::pipe::register(SIGUSR1, self.waker.try_clone()?)?;
        Ok(())
    }

    /// Returns whether SIGUSR1 has arrived since the last call.
    #[must_use]
    pub fn take_request_to_write(&self) -> bool {
        let is_asked = self.asks_to_write.swap(false, Ordering::Relaxed);
        if is_asked {
            // The descriptor must not stay readable. The flag of an ending signal is set before its
            // byte arrives here.
            let mut bytes = [0; 64];
            while (&self.wake).read(&mut bytes).is_ok_and(|length| length > 0) {}
        }
        is_asked
    }

    /// Returns a watch without handlers, so that a test leaves the process's signals alone.
    #[cfg(test)]
    pub(crate) fn never() -> io::Result<Signals> {
        let (wake, waker) = UnixStream::pair()?;
        Ok(Signals {
            arrived: Arc::default(),
            asks_to_end: Arc::default(),
            asks_to_write: Arc::default(),
            wake,
            // If this end were closed, the other end would be readable.
            waker,
        })
    }

    /// Ignores the ending signals, for a process whose parent decides when to end.
    pub fn ignore() {
        for signal in ENDING {
            // SAFETY: SIG_IGN installs no handler, and the signal numbers are valid.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }

    /// Returns whether a signal has arrived.
    #[must_use]
    pub fn arrived(&self) -> bool {
        self.arrived.load(Ordering::Relaxed)
    }

    /// Returns whether SIGTERM has arrived. A terminal sends its signals to the whole process
    /// group; SIGTERM usually comes to this process alone.
    #[must_use]
    pub fn asks_to_end(&self) -> bool {
        self.asks_to_end.load(Ordering::Relaxed)
    }
}

/// The descriptor is readable from the first signal on.
impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: all-zero bytes are a valid sigaction, which the call overwrites;
    // a null new action only reads the present one.
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

    /// Runs the `#[ignore]`d test `name` in a process of its own, since signals are per process.
    /// Returns once the test has printed `ready`.
    fn spawn(name: &str) -> (Child, BufReader<std::process::ChildStdout>) {
        spawn_as(name, libc::SIG_DFL)
    }

    /// Runs the test as [`spawn`] does, with `hangup` as the child's action for SIGHUP.
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
                // The child is in its own process group, which does not end with the test.
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
        let more = if signals.asks_to_end() {
            ", asks to end"
        } else {
            ""
        };
        println!("arrived{more}");
        io::stdout().flush().unwrap();
        // The process ends when the test closes its standard input.
        let _ = io::stdin().read_line(&mut String::new());
    }

    #[test]
    fn first_signal_is_noted_and_wakes_a_poll() {
        for ending in [Signal::INT, Signal::TERM, Signal::HUP] {
            let (mut child, mut output) = spawn("window::signals::tests::helper_watches");
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
        let (mut child, mut output) =
            spawn_as("window::signals::tests::helper_watches", libc::SIG_IGN);
        // If SIGHUP counted, SIGINT would be the second signal and end the process.
        signal(&child, Signal::HUP);
        signal(&child, Signal::INT);
        await_line(&mut output, "arrived");
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn second_signal_quits() {
        let (mut child, mut output) = spawn("window::signals::tests::helper_watches");
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
