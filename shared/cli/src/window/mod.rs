//! The measurement window: its start, its end, and the waiting in between.

mod control;
mod patience;
mod signals;
mod start_at;

use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::time::Duration;

use anyhow::{Context, bail};
use loader::monotonic_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use self::control::{Control, Order};
use crate::error::say;

pub use self::patience::Patience;
pub use self::signals::Signals;
pub use self::start_at::StartAt;

/// Time between the announcement and the start of the window: enough to read the state of all
/// threads before it.
const START_NOTICE_NS: u64 = 10_000_000;

/// Time between the announcement and the end of the window.
const NOTICE_NS: u64 = 2_000_000;

/// The measurement window, in ns of CLOCK_MONOTONIC.
///
/// The window ends after a duration, at a signal, at the controlling parent's order, or when the
/// tool finds that no target is left.
#[derive(Debug)]
pub struct Window {
    duration: Option<Duration>,
    start_at: Option<StartAt>,
    ender: Ender,
    tool: &'static str,
    /// Watch on the phases before and after the window; `None` if a parent watches them.
    patience: Option<Patience>,
    start: u64,
    stop: Option<u64>,
    /// True if this tool has told the parent why the window should end.
    has_reported_end: bool,
    /// True if the window ended because a recorder was asked to write.
    is_to_write: bool,
}

/// Next step of a tool that follows its window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next step is due within this time.
    In(Duration),
    /// No target is left.
    NoTargets,
    /// A wait set off a trigger; the text is for the user.
    Triggered(String),
}

/// Waits until shortly before the next multiple, and returns the time of the multiple.
fn await_start(start_at: StartAt, signals: &Signals) -> anyhow::Result<u64> {
    let start = start_at.next(START_NOTICE_NS);
    loop {
        let left = start.saturating_sub(monotonic_ns());
        let left = left.saturating_sub(START_NOTICE_NS);
        if left == 0 {
            return Ok(start);
        }
        if signals.arrived() {
            bail!("interrupted before the window opened; nothing was measured");
        }
        let left = Duration::from_nanos(left).min(Window::LONGEST_PATIENCE);
        let timeout = Timespec::try_from(left).context("cannot wait that long")?;
        match poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for the start"),
        }
    }
}

/// Source of an early end of the window.
#[derive(Debug)]
enum Ender {
    Signals(Signals),
    Parent(Control),
}

impl Window {
    /// Maximum sleep before the window's end is checked again.
    pub const LONGEST_PATIENCE: Duration = Duration::from_millis(100);

    /// Starts to watch for signals. With `control_fd`, a socket to a controlling parent, the tool
    /// ignores the signals and watches the socket instead.
    ///
    /// Without a parent, [`Patience`] explains delays until the window opens and after it ends.
    ///
    /// # Errors
    /// `control_fd` is not a socket, or signals cannot be watched.
    pub fn new(
        tool: &'static str,
        duration: Option<Duration>,
        start_at: Option<StartAt>,
        control_fd: Option<RawFd>,
    ) -> anyhow::Result<Window> {
        let ender = match control_fd {
            Some(fd) => {
                let control = Control::from_raw(fd)?;
                Signals::ignore();
                Ender::Parent(control)
            }
            None => Ender::Signals(Signals::install().context("cannot watch for signals")?),
        };
        let patience = control_fd.is_none();
        Ok(Window {
            duration,
            start_at,
            ender,
            tool,
            patience: patience.then(|| Patience::begin(tool, "attaching")),
            start: 0,
            stop: None,
            has_reported_end: false,
            is_to_write: false,
        })
    }

    /// Returns the time at which the window starts: in 10 ms, soon at the requested multiple, or the
    /// time that the parent gives after the tool sends `ready`. The caller must have attached the
    /// BPF programs.
    ///
    /// If targets are awaited, the duration only counts from [`Window::await_first`] on.
    ///
    /// # Errors
    /// The parent is gone (the tool ends silently), or sends a line that is no order; or a signal
    /// comes while the tool waits for the requested multiple.
    pub fn begin(&mut self, are_awaited: bool) -> anyhow::Result<u64> {
        self.start = match &mut self.ender {
            Ender::Signals(signals) => match self.start_at {
                Some(start_at) => await_start(start_at, signals)?,
                None => monotonic_ns() + START_NOTICE_NS,
            },
            Ender::Parent(control) => {
                control.send("ready")?;
                loop {
                    match control.wait()? {
                        Order::Start(start) => break start,
                        // The window ends before it starts; the start still follows.
                        Order::Stop(stop) => self.stop = Some(stop),
                    }
                }
            }
        };
        if !are_awaited {
            self.apply_duration();
        }
        Ok(self.start)
    }

    /// Waits for the first awaited target, and returns the time at which the window starts.
    ///
    /// `first` returns the time at which the target appeared, or 0 if no target has appeared yet.
    /// The function calls `first` whenever `source` is readable, and at least every `patience` or
    /// [`Window::LONGEST_PATIENCE`]. The window starts at the returned time, but not before the
    /// start that [`Window::begin`] returned. The function sends the window's start to the parent.
    ///
    /// # Errors
    /// The window ended first, or the errors of `first` and of [`Window::ended`].
    pub fn await_first(
        &mut self,
        source: impl AsFd,
        patience: Duration,
        mut first: impl FnMut() -> anyhow::Result<u64>,
    ) -> anyhow::Result<u64> {
        self.patience = None;
        loop {
            let came = first()?;
            if came > 0 {
                self.start = self.start.max(came);
                self.apply_duration();
                if let Ender::Parent(control) = &mut self.ender {
                    control.send(&format!("first {}", self.start))?;
                }
                return Ok(self.start);
            }
            if self.ended()?.is_some() {
                bail!("no target appeared before the end; nothing was measured");
            }
            self.wait(source.as_fd(), None, patience)?;
        }
    }

    /// Sets the window's end by its start and the duration, if there is one.
    fn apply_duration(&mut self) {
        if let Some(duration) = self.duration {
            let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
            self.stop_by(self.start.saturating_add(nanoseconds));
        }
    }

    /// Returns the time at which the window stopped, once that time has passed. The time is never
    /// before the start.
    ///
    /// # Errors
    /// The parent is gone (the tool ends silently), or sends a line that is no order.
    pub fn ended(&mut self) -> anyhow::Result<Option<u64>> {
        if let Some(stop) = self.passed() {
            return Ok(Some(stop));
        }
        match &mut self.ender {
            Ender::Signals(signals) => {
                self.is_to_write |= signals.take_request_to_write();
                if signals.arrived() || self.is_to_write {
                    self.stop_by(monotonic_ns() + NOTICE_NS);
                }
            }
            Ender::Parent(control) => {
                while let Some(order) = control.poll()? {
                    if let Order::Stop(stop) = order {
                        self.stop = Some(stop);
                    }
                }
            }
        }
        Ok(self.passed())
    }

    /// Makes SIGUSR1 end the window, if no parent controls it.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub fn watch_requests_to_write(&self) -> anyhow::Result<()> {
        let watched = self.signals().map(Signals::watch_requests_to_write);
        watched
            .unwrap_or(Ok(()))
            .context("cannot watch for SIGUSR1")
    }

    /// Returns whether the window ended only because a recorder was asked to write.
    #[must_use]
    pub fn is_to_go_on(&self) -> bool {
        let has_arrived = self.signals().is_some_and(Signals::arrived);
        self.is_to_write && !has_arrived
    }

    /// Prepares the window of the next recording, which has the same duration.
    pub fn restart(&mut self) {
        self.start_at = None;
        self.patience = Some(Patience::begin(self.tool, "attaching"));
        (self.start, self.stop) = (0, None);
        (self.has_reported_end, self.is_to_write) = (false, false);
    }

    /// Returns the time at which the window stops or has stopped, once it is known.
    #[must_use]
    pub fn stop(&self) -> Option<u64> {
        self.stop.map(|stop| stop.max(self.start))
    }

    /// Returns whether a parent, not this tool, decides when to start and stop.
    #[must_use]
    pub fn is_controlled(&self) -> bool {
        matches!(self.ender, Ender::Parent(_))
    }

    /// Waits for the end of the window, and returns the time at which it stopped.
    ///
    /// The function calls `tick` whenever `source` is readable, and once when `end`, the descriptor
    /// of a process, is readable. The argument of `tick` is the time at which the window stops,
    /// once that time is known. `tick` returns the time until its next call, at most
    /// [`Window::LONGEST_PATIENCE`], or why the window should end. The window then ends, unless a
    /// parent decides its end.
    ///
    /// A signal, a trigger or the loss of all targets ends the window 2 ms later, so that `tick` can pass the
    /// end on in time.
    ///
    /// # Errors
    /// The errors of `tick` and of [`Window::ended`].
    pub fn follow(
        &mut self,
        source: impl AsFd,
        mut end: Option<BorrowedFd<'_>>,
        mut tick: impl FnMut(Option<u64>) -> anyhow::Result<Next>,
    ) -> anyhow::Result<u64> {
        self.patience = None;
        loop {
            let ended = self.ended()?;
            let patience = match tick(self.stop())? {
                Next::In(patience) => patience,
                Next::NoTargets if self.end_early("gone")? => continue,
                Next::Triggered(wait) if self.end_by_trigger(&wait)? => continue,
                Next::NoTargets | Next::Triggered(_) => Window::LONGEST_PATIENCE,
            };
            if let Some(stop) = ended {
                let tool = (!self.is_controlled()).then_some(self.tool);
                self.patience = tool.map(|tool| Patience::begin(tool, "ending"));
                return Ok(stop);
            }
            if self.wait(source.as_fd(), end, patience)? {
                end = None;
            }
        }
    }

    /// Ends the window soon because of a wait, and tells the user. Returns whether the window's end
    /// changes.
    fn end_by_trigger(&mut self, wait: &str) -> anyhow::Result<bool> {
        if !self.is_controlled() {
            say(format_args!("{}: {wait}", self.tool));
        }
        self.end_early(&format!("triggered {wait}"))
    }

    /// Ends the window soon. If a parent controls the window, the function sends `why` once instead.
    /// Returns whether the window's end changes.
    fn end_early(&mut self, why: &str) -> anyhow::Result<bool> {
        match &mut self.ender {
            Ender::Signals(_) => {
                let before = self.stop;
                self.stop_by(monotonic_ns() + NOTICE_NS);
                Ok(self.stop != before)
            }
            Ender::Parent(control) => {
                if !std::mem::replace(&mut self.has_reported_end, true) {
                    control.send(why)?;
                }
                Ok(false)
            }
        }
    }

    /// Sleeps until `source` or `end` is readable, a signal or an order arrives, the window may be
    /// over, or `patience` has passed. Returns whether `end` is readable.
    fn wait(
        &self,
        source: BorrowedFd<'_>,
        end: Option<BorrowedFd<'_>>,
        patience: Duration,
    ) -> anyhow::Result<bool> {
        let ender = match &self.ender {
            Ender::Signals(signals) => signals.as_fd(),
            Ender::Parent(control) => control.as_fd(),
        };
        let nanoseconds = self
            .stop
            .map_or(u64::MAX, |stop| stop.saturating_sub(monotonic_ns()))
            .min(patience.min(Window::LONGEST_PATIENCE).as_nanos() as u64);
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: nanoseconds as i64,
        };
        let descriptors = [ender, source].into_iter().chain(end);
        let mut sources: Vec<_> = descriptors
            .map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN))
            .collect();
        match poll(&mut sources, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for the end of the window"),
        }
        Ok(sources.get(2).is_some_and(|end| !end.revents().is_empty()))
    }

    /// Returns the watch on signals; `None` if a parent controls the window.
    #[must_use]
    pub fn signals(&self) -> Option<&Signals> {
        match &self.ender {
            Ender::Signals(signals) => Some(signals),
            Ender::Parent(_) => None,
        }
    }

    /// Sends a line to the controlling parent; does nothing without one.
    ///
    /// # Errors
    /// The parent is gone (the tool ends silently).
    pub fn report(&mut self, line: &str) -> anyhow::Result<()> {
        match &mut self.ender {
            Ender::Signals(_) => Ok(()),
            Ender::Parent(control) => control.send(line),
        }
    }

    fn stop_by(&mut self, time: u64) {
        self.stop = Some(self.stop.map_or(time, |stop| stop.min(time)));
    }

    fn passed(&self) -> Option<u64> {
        self.stop().filter(|&stop| stop <= monotonic_ns())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{self, Write};
    use std::os::fd::IntoRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Returns a window under a parent's control, and leaves the test runner's signals alone.
    fn controlled(duration: Option<Duration>) -> (UnixStream, Window) {
        let (parent, child) = UnixStream::pair().unwrap();
        let ender = Ender::Parent(Control::from_raw(child.into_raw_fd()).unwrap());
        (
            parent,
            Window {
                duration,
                start_at: None,
                ender,
                tool: "tool",
                patience: None,
                start: 0,
                stop: None,
                has_reported_end: false,
                is_to_write: false,
            },
        )
    }

    fn plain(duration: Option<Duration>) -> Window {
        let ender = Ender::Signals(Signals::never().unwrap());
        Window {
            duration,
            start_at: None,
            ender,
            tool: "tool",
            patience: None,
            start: 0,
            stop: None,
            has_reported_end: false,
            is_to_write: false,
        }
    }

    /// Follows the window with a silent source, while `alive` returns true. Returns all stops that
    /// were announced, and the actual one.
    fn follow(window: &mut Window, mut alive: impl FnMut() -> bool) -> (Vec<u64>, u64) {
        let (events, _writer) = io::pipe().unwrap();
        let mut announced = Vec::new();
        let stop = window.follow(&events, None, |stop| {
            announced.extend(stop);
            Ok(if alive() {
                Next::In(Duration::MAX)
            } else {
                Next::NoTargets
            })
        });
        let stop = stop.unwrap();
        assert!(announced.contains(&stop));
        (announced, stop)
    }

    #[test]
    fn duration_ends_the_window_to_the_nanosecond() {
        let mut window = plain(Some(Duration::from_millis(30)));
        let start = window.begin(false).unwrap();
        assert_eq!(window.ended().unwrap(), None);
        let (announced, stop) = follow(&mut window, || true);
        assert_eq!(stop, start + 30_000_000);
        assert!(announced.iter().all(|&time| time == stop));
        assert!(!window.is_controlled());
        assert!(window.report("nobody listens").is_ok());
    }

    #[test]
    fn an_end_is_heard_of_once() {
        let mut window = plain(Some(Duration::from_millis(250)));
        window.begin(false).unwrap();
        let (events, _writer) = io::pipe().unwrap();
        // The writer is gone, so the pipe stays readable.
        let (ended, _) = io::pipe().unwrap();
        let mut rounds = 0;
        let count = |_| {
            rounds += 1;
            Ok(Next::In(Duration::MAX))
        };
        window.follow(&events, Some(ended.as_fd()), count).unwrap();
        assert!(rounds < 10, "{rounds}");
    }

    #[test]
    fn a_stop_before_the_start_gives_an_empty_window() {
        let (mut parent, mut window) = controlled(None);
        parent.write_all(b"stop 5\nstart 10\n").unwrap();
        assert_eq!(window.begin(false).unwrap(), 10);
        assert_eq!(window.ended().unwrap(), Some(10));
    }
}
