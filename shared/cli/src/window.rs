//! The window: who decides when measuring starts and when it stops.

use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::time::Duration;

use anyhow::{Context, bail};
use loader::monotonic_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::control::{Control, Order};
use crate::patience::Patience;
use crate::signals::Signals;

/// How long before it comes the start of the window is announced: enough to
/// read what is there beforehand.
const START_NOTICE_NS: u64 = 10_000_000;

/// How long before it comes the end of the window is announced.
const NOTICE_NS: u64 = 2_000_000;

/// The span of time that is measured, in nanoseconds of `CLOCK_MONOTONIC`.
///
/// It ends after a duration, at a signal, when the controlling parent says so,
/// or when the tool finds that there is nothing left to measure.
#[derive(Debug)]
pub struct Window {
    duration: Option<Duration>,
    ender: Ender,
    tool: &'static str,
    /// Watches the phases before and after the window; `None` where a parent does so.
    patience: Option<Patience>,
    start: u64,
    stop: Option<u64>,
    /// Whether the parent knows that nothing is left to measure.
    has_told: bool,
}

/// Who ends the window, beside the duration.
#[derive(Debug)]
enum Ender {
    Signals(Signals),
    Parent(Control),
}

impl Window {
    /// The longest sleep between two looks whether it is over.
    pub const LONGEST_PATIENCE: Duration = Duration::from_millis(100);

    /// Starts to watch for signals; or, where a parent holds the other end of
    /// the socket `control_fd`, ignores them and watches that. From here to the window, and
    /// from its end on, `tool` says why it takes long.
    ///
    /// # Errors
    /// `control_fd` is not a socket, or signals cannot be watched.
    pub fn new(
        tool: &'static str,
        duration: Option<Duration>,
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
            ender,
            tool,
            patience: patience.then(|| Patience::begin(tool, "attaching")),
            start: 0,
            stop: None,
            has_told: false,
        })
    }

    /// Call once everything is attached: returns the time the window starts,
    /// which is in a moment, or, after telling the parent `ready`, the time it names.
    /// Where targets are awaited the duration is not yet that of the window.
    ///
    /// # Errors
    /// The parent is gone (ends the tool without a word) or talks nonsense.
    pub fn begin(&mut self, are_awaited: bool) -> anyhow::Result<u64> {
        self.start = match &mut self.ender {
            Ender::Signals(_) => monotonic_ns() + START_NOTICE_NS,
            Ender::Parent(control) => {
                control.say("ready")?;
                loop {
                    match control.wait()? {
                        Order::Start(start) => break start,
                        // Ended before it began: the start will follow.
                        Order::Stop(stop) => self.stop = Some(stop),
                    }
                }
            }
        };
        if !are_awaited {
            self.last();
        }
        Ok(self.start)
    }

    /// Sleeps until `first` says when the first target came, if not 0, asking it whenever
    /// `source` is readable, and `patience` later, at most [`Window::LONGEST_PATIENCE`]. The
    /// window begins then, unless that was before programs could measure. Tells the parent.
    ///
    /// # Errors
    /// The window ended before that, or those of `first` and of [`Window::ended`].
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
                self.last();
                if let Ender::Parent(control) = &mut self.ender {
                    control.say(&format!("first {}", self.start))?;
                }
                return Ok(self.start);
            }
            if self.ended()?.is_some() {
                bail!("nobody came; nothing was measured");
            }
            self.wait(source.as_fd(), None, patience)?;
        }
    }

    /// Has the window last as long as it is to.
    fn last(&mut self) {
        if let Some(duration) = self.duration {
            let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
            self.stop_by(self.start.saturating_add(nanoseconds));
        }
    }

    /// The time the window stopped, once that is known and has passed. Never
    /// before its start.
    ///
    /// # Errors
    /// The parent is gone (ends the tool without a word) or talks nonsense.
    pub fn ended(&mut self) -> anyhow::Result<Option<u64>> {
        if let Some(stop) = self.passed() {
            return Ok(Some(stop));
        }
        match &mut self.ender {
            Ender::Signals(signals) => {
                if signals.arrived() {
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

    /// The time at which the window will stop or has stopped, once known.
    #[must_use]
    pub fn stop(&self) -> Option<u64> {
        self.stop.map(|stop| stop.max(self.start))
    }

    /// Whether a parent, not this tool, says when to start and stop.
    #[must_use]
    pub fn is_controlled(&self) -> bool {
        matches!(self.ender, Ender::Parent(_))
    }

    /// Sleeps until the window is over, and calls `tick` with the time it will
    /// stop, once known: whenever `source` is readable, and once when `end`, a process's, is.
    /// `tick` says how soon to call it again, [`Window::LONGEST_PATIENCE`] at most, if
    /// there is anything left to measure; once there is not, the window ends, unless that is
    /// the parent's to say. Returns the time it stopped.
    ///
    /// Whatever ends the window does so a little later than now, so that
    /// `tick` can pass the time on before it has come.
    ///
    /// # Errors
    /// Those of `tick` and of [`Window::ended`].
    pub fn follow(
        &mut self,
        source: impl AsFd,
        mut end: Option<BorrowedFd<'_>>,
        mut tick: impl FnMut(Option<u64>) -> anyhow::Result<Option<Duration>>,
    ) -> anyhow::Result<u64> {
        self.patience = None;
        loop {
            let ended = self.ended()?;
            let patience = tick(self.stop())?;
            if patience.is_none() && self.notes_the_end()? {
                continue;
            }
            if let Some(stop) = ended {
                let tool = (!self.is_controlled()).then_some(self.tool);
                self.patience = tool.map(|tool| Patience::begin(tool, "ending"));
                return Ok(stop);
            }
            let patience = patience.unwrap_or(Window::LONGEST_PATIENCE);
            if self.wait(source.as_fd(), end, patience)? {
                end = None;
            }
        }
    }

    /// Nothing is left to measure: ends the window soon, or tells the parent once.
    /// Whether that changes when it stops.
    fn notes_the_end(&mut self) -> anyhow::Result<bool> {
        match &mut self.ender {
            Ender::Signals(_) => {
                let before = self.stop;
                self.stop_by(monotonic_ns() + NOTICE_NS);
                Ok(self.stop != before)
            }
            Ender::Parent(control) => {
                if !std::mem::replace(&mut self.has_told, true) {
                    control.say("gone")?;
                }
                Ok(false)
            }
        }
    }

    /// Sleeps until `source` or `end` is readable, a signal or an order comes, the
    /// window may be over, or `patience` has run out. Whether it is `end`.
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
        let patience = self
            .stop
            .map_or(u64::MAX, |stop| stop.saturating_sub(monotonic_ns()))
            .min(patience.min(Window::LONGEST_PATIENCE).as_nanos() as u64);
        let patience = Timespec {
            tv_sec: 0,
            tv_nsec: patience as i64,
        };
        let sources = [ender, source].into_iter().chain(end);
        let mut sources: Vec<_> = sources
            .map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN))
            .collect();
        match poll(&mut sources, Some(&patience)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for the end of the window"),
        }
        Ok(sources.get(2).is_some_and(|end| !end.revents().is_empty()))
    }

    /// The signals that end it, unless a parent does.
    #[must_use]
    pub fn signals(&self) -> Option<&Signals> {
        match &self.ender {
            Ender::Signals(signals) => Some(signals),
            Ender::Parent(_) => None,
        }
    }

    /// Sends a line to the controlling parent; without one, does nothing.
    ///
    /// # Errors
    /// The parent is gone (ends the tool without a word).
    pub fn report(&mut self, line: &str) -> anyhow::Result<()> {
        match &mut self.ender {
            Ender::Signals(_) => Ok(()),
            Ender::Parent(control) => control.say(line),
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

    /// A window under control, without ignoring the test runner's signals.
    fn controlled(duration: Option<Duration>) -> (UnixStream, Window) {
        let (parent, child) = UnixStream::pair().unwrap();
        let ender = Ender::Parent(Control::from_raw(child.into_raw_fd()).unwrap());
        (
            parent,
            Window {
                duration,
                ender,
                tool: "tool",
                patience: None,
                start: 0,
                stop: None,
                has_told: false,
            },
        )
    }

    fn plain(duration: Option<Duration>) -> Window {
        let ender = Ender::Signals(Signals::that_never_come().unwrap());
        Window {
            duration,
            ender,
            tool: "tool",
            patience: None,
            start: 0,
            stop: None,
            has_told: false,
        }
    }

    /// Follows the window with nothing to read and targets that live as long
    /// as `alive` says; every stop that was announced, and the one it was.
    fn follow(window: &mut Window, mut alive: impl FnMut() -> bool) -> (Vec<u64>, u64) {
        let (events, _writer) = io::pipe().unwrap();
        let mut announced = Vec::new();
        let stop = window.follow(&events, None, |stop| {
            announced.extend(stop);
            Ok(alive().then_some(Duration::MAX))
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
        // Its writer is gone: it is readable for ever.
        let (ended, _) = io::pipe().unwrap();
        let mut rounds = 0;
        let count = |_| {
            rounds += 1;
            Ok(Some(Duration::MAX))
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
