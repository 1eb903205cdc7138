//! Waits as offwaketime prints them: the sleeper's stack, and a waker's stack after each `--`. A
//! waker's stack begins with the leaf and ends with the waker's name.

use crate::printed::folded::{bare, has_path, parse_thread};
use crate::{Folded, Line, Seen};

/// A waker, or a mark such as `[timer]` in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waker {
    /// Thread name without the IDs.
    pub comm: String,
    /// PID and TID, if the name is `comm-PID/TID`.
    pub thread: Option<(u32, u32)>,
    /// Frames from the root to the leaf, as in a sleeper's stack.
    pub frames: Vec<String>,
}

impl Waker {
    /// Returns whether a frame has this name, without annotations such as `_[k]`.
    pub fn has(&self, function: &str) -> bool {
        self.frames.iter().any(|frame| bare(frame) == function)
    }

    /// Returns whether these functions call each other directly, outermost first.
    pub fn has_path(&self, path: &[&str]) -> bool {
        has_path(&self.frames, path)
    }
}

impl Line {
    /// Returns the line up to its first `--`, with the waiting thread and its stack.
    pub fn sleeper(&self) -> Line {
        let end = self.frames.iter().position(|frame| frame == "--");
        Line {
            frames: self.frames[..end.unwrap_or(self.frames.len())].to_vec(),
            ..self.clone()
        }
    }

    /// Returns the wakers: the thread that ended the wait, the thread that woke that thread, and so
    /// on.
    pub fn wakers(&self) -> Vec<Waker> {
        let parts = self.frames.split(|frame| frame == "--").skip(1);
        parts
            .map(|part| {
                let (name, frames) = part.split_last().expect("a waker's name");
                let (comm, thread) = parse_thread(name).unwrap_or((name.clone(), None));
                let frames = frames.iter().rev().cloned().collect();
                Waker {
                    comm,
                    thread,
                    frames,
                }
            })
            .collect()
    }

    /// Returns the waker that ended the wait.
    ///
    /// # Panics
    ///
    /// Panics if the line has no waker.
    #[track_caller]
    pub fn waker(&self) -> Waker {
        let mut wakers = self.wakers().into_iter();
        wakers
            .next()
            .unwrap_or_else(|| panic!("no waker in: {self}"))
    }

    /// Returns the names of all wakers, in order.
    pub fn waker_comms(&self) -> Vec<String> {
        self.wakers().into_iter().map(|waker| waker.comm).collect()
    }
}

impl Folded {
    /// Returns the lines whose first waker has this name.
    pub fn woken_by(&self, comm: &str) -> Folded {
        self.only(|line| line.waker().comm == comm)
    }

    /// Returns the sleepers' stacks alone, as offcputime would print them.
    pub fn sleepers(&self) -> Folded {
        Folded {
            lines: self.lines.iter().map(Line::sleeper).collect(),
        }
    }

    /// Returns the lines of waits that ended. A wait that was still open when the window closed has
    /// no waker.
    pub fn ended(&self) -> Folded {
        self.only(|line| line.waker().comm != STILL_BLOCKED)
    }
}

impl Seen {
    /// Returns the waits without a missing stack or waker. The tool marks and counts waits for
    /// which the machine hid a context switch or a wake-up. The tool also marks waits of threads
    /// that woke up just as the window opened.
    ///
    /// # Panics
    ///
    /// Panics if more are missing than hidden events and the window's start explain.
    #[track_caller]
    pub fn waits_but_missed(&self) -> Folded {
        assert!(
            self.misses_what_was_hidden(),
            "stacks or wakers are missing:\n{}{}",
            self.stderr,
            self.folded.only(is_missed)
        );
        self.folded.only(|line| !is_missed(line))
    }

    /// Returns whether the context switches that the machine hid explain the missing stacks and
    /// wakers. A machine seldom hides wake-ups alone.
    pub fn misses_what_was_hidden(&self) -> bool {
        let missed = self.folded.only(is_missed);
        let (hidden, opened) = (self.lost["events"], self.folded.comms().len() as u64);
        // A machine that hides switches hides wake-ups, too. The tool counts a hidden switch only
        // if it contradicts the switches that the tool saw. A CPU that hides its events for a while
        // also hides its wake-ups of threads on other CPUs, and the tool sees the switches of these
        // threads. Hidden wake-ups can therefore be many more than hidden switches.
        let is_explained = unseen_wake_ups(&self.stderr) <= 2 * (hidden + opened)
            || hidden > 0 && missed.total() * 200 <= self.folded.total();
        is_explained && self.lost["stacks"] <= 2 * (hidden + opened)
    }
}

/// Returns whether a stack or a waker is marked as missing.
fn is_missed(line: &Line) -> bool {
    line.frames.iter().any(|frame| frame.starts_with("[Missed"))
}

/// Returns the number of wake-ups that a tool reports as not seen.
pub fn unseen_wake_ups(stderr: &str) -> u64 {
    let (before, _) = stderr
        .split_once(" wake-ups were not seen")
        .unwrap_or(("0", ""));
    let count = before.split_whitespace().last().unwrap();
    count.replace(',', "").parse().unwrap()
}

/// Mark in a waker's place if the wait was still open at the window's end.
pub const STILL_BLOCKED: &str = "[still blocked]";
/// Mark in a waker's place if a timer ended the wait.
pub const TIMER: &str = "[timer]";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_sleeper_and_its_wakers() {
        let text =
            b"d-1/2;main;-;read_[k]_[o];--;wake_[k];write;main;c-3/4;--;b-3/5;--;tick;irq;[timer] 7\n";
        let folded = Folded::parse_per_thread(text);
        let line = &folded.lines[0];
        assert_eq!(folded.sleepers().marked("_[o]").total(), 7);
        assert_eq!(line.sleeper().frames, ["main", "-", "read_[k]_[o]"]);
        assert_eq!(line.waker_comms(), ["c", "b", "[timer]"]);
        assert!(line.waker().has_path(&["main", "write", "wake"]));
        assert!(line.waker().has("wake") && !line.waker().has("read"));
        let threads: Vec<_> = line.wakers().iter().map(|waker| waker.thread).collect();
        assert_eq!(threads, [Some((3, 4)), Some((3, 5)), None]);
        assert_eq!(folded.woken_by("c").total(), 7);
        assert_eq!(folded.woken_by("b").total(), 0);
    }

    #[test]
    fn wake_ups_that_were_not_seen_are_counted() {
        let line = "offwaketime: 9 intervals, 6 stacks; lost: 11 events, 12 stacks";
        assert_eq!(unseen_wake_ups(line), 0);
        assert_eq!(
            unseen_wake_ups(&format!(
                "{line}\noffwaketime: 1,012 wake-ups were not seen\n"
            )),
            1012
        );
    }

    #[test]
    fn what_is_still_blocked_has_not_ended() {
        let folded = Folded::parse(b"d;read;--;[still blocked] 3\nd;read;--;wake;c 4\n");
        assert_eq!(folded.ended().total(), 4);
    }
}
