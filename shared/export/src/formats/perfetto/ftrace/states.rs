//! The states of a lane as stays on CPUs and wake-ups between them.
//!
//! Perfetto derives every state from two events: a switch from one thread to another, with the
//! state of the thread that leaves, and a wake-up. So each running time is a stay on a CPU with two
//! switches; blocked time begins at a switch and ends at a wake-up; runnable time follows a switch
//! or a wake-up. Where a lane begins blocked, a stay without length stands for the switch that was
//! before it.

use profile::{Profile, Reason, State, ThreadChange, ThreadId};

use super::super::lanes::{Lane, NOBODY, Row};

/// A stay of a thread on a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stay {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// Time of the wake-up that made the thread runnable before; `u64::MAX` without one.
    pub(super) woken_ns: u64,
    /// Place of the waker.
    pub(super) waker: u32,
    /// Place of the thread.
    pub(super) thread: u32,
    /// Number of the CPU; [`NO_CPU`] if no sample tells it.
    pub(super) cpu: u32,
    /// True if a sample in this stay has the CPU, false if the nearest sample has it.
    pub(super) is_seen: bool,
    pub(super) leaves: Leaves,
}

/// In place of a CPU that is not known.
pub(super) const NO_CPU: u32 = u32::MAX;

/// State in which a thread leaves a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    Runnable,
    /// Blocked, as most waits are.
    Sleeping,
    /// Blocked in a wait that signals do not interrupt.
    Uninterruptible,
    /// The thread exits, or ceases to be a target.
    Dead,
    /// Nothing was recorded then.
    Unknown,
    /// The thread stays beyond the end of the window.
    Never,
    /// There is a wake-up alone: the thread did not run any more.
    WithoutRunning,
}

/// State of a thread at a point of its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Now {
    /// Before the first row.
    Unborn,
    Running,
    Runnable,
    Blocked,
    Unknown,
    Dead,
}

/// Times at which threads ended, by thread and time.
pub(super) struct Ends(Vec<(ThreadId, u64)>);

impl Ends {
    pub(super) fn new(profile: &Profile) -> Ends {
        let events = profile.times.thread_events.iter();
        let ends = events.filter(|event| event.change == ThreadChange::Ended);
        let mut ends: Vec<_> = ends.map(|event| (event.thread, event.time_ns)).collect();
        ends.sort_unstable();
        Ends(ends)
    }

    /// Returns whether a thread ended in a span, both ends included.
    fn has(&self, thread: ThreadId, from_ns: u64, to_ns: u64) -> bool {
        let first = self.0.partition_point(|end| *end < (thread, from_ns));
        let first = self.0.get(first);
        first.is_some_and(|(of, ns)| *of == thread && *ns <= to_ns)
    }
}

/// Adds the stays of a lane.
pub(super) fn add_stays(profile: &Profile, lane: &Lane, ends: &Ends, stays: &mut Vec<Stay>) {
    let mut walk = Walk {
        lane,
        now: Now::Unborn,
        waker: NOBODY,
        woken: None,
        stays,
    };
    let mut last: Option<Row> = None;
    let mut rows = lane.rows().peekable();
    while let Some(row) = rows.next() {
        if let Some(last) = last.filter(|last| last.end_ns < row.start_ns) {
            let is_dead = ends.has(lane.id, last.start_ns, row.start_ns);
            walk.stop(is_dead, last.end_ns);
        }
        let is_followed = rows.peek().is_some_and(|next| next.start_ns == row.end_ns);
        walk.add(profile, &row, is_followed);
        last = Some(row);
    }
    let Some(last) = last else { return };
    let window = &profile.meta.window;
    let closes_ns = window.start_ns.saturating_add(window.length_ns);
    if ends.has(lane.id, last.start_ns, u64::MAX) || last.end_ns < closes_ns {
        let is_dead = ends.has(lane.id, last.start_ns, u64::MAX);
        walk.stop(is_dead, last.end_ns);
    } else {
        walk.close(last.end_ns);
    }
}

/// Goes along a lane.
struct Walk<'a> {
    lane: &'a Lane<'a>,
    now: Now,
    /// Thread that ends the present wait.
    waker: u32,
    /// The wake-up since which the thread is runnable.
    woken: Option<(u64, u32)>,
    stays: &'a mut Vec<Stay>,
}

impl Walk<'_> {
    /// Adds a row. `is_followed` tells whether another begins at its end.
    fn add(&mut self, profile: &Profile, row: &Row, is_followed: bool) {
        match row.state() {
            Some(State::Running) => self.change(Now::Running, Leaves::Never, row.start_ns),
            Some(State::Runnable) => self.change(Now::Runnable, Leaves::Runnable, row.start_ns),
            Some(State::Blocked) => {
                self.change(Now::Blocked, blocked(profile, row), row.start_ns);
                self.waker = row.waker;
            }
            None => self.add_mixed(row, is_followed),
        }
    }

    /// Adds a row of several stays as few of them: the shares are right, and the thread runs when
    /// it certainly ran. That is right before a row that follows, and right after being runnable.
    fn add_mixed(&mut self, row: &Row, is_followed: bool) {
        let Row {
            start_ns, end_ns, ..
        } = *row;
        let running_ns = row.shares.running_ns;
        let mut runnable_ns = row.shares.runnable_ns;
        // A thread that was woken before the row runs as soon as it can.
        let first_ns = match self.now {
            Now::Blocked | Now::Runnable => start_ns + runnable_ns,
            _ => start_ns,
        };
        let is_led = matches!(self.now, Now::Blocked | Now::Runnable | Now::Running);
        let split = |running_ns: u64| match (is_led, is_followed) {
            (true, true) => (running_ns / 2, running_ns - running_ns / 2),
            (true, false) => (running_ns, 0),
            (false, true) => (0, running_ns),
            (false, false) => (0, 0),
        };
        let (mut led_ns, mut last_ns) = split(running_ns);
        let ran_ns = self.lane.ran_at(first_ns + led_ns, end_ns - last_ns);
        if ran_ns.is_some() {
            (led_ns, last_ns) = split(running_ns - running_ns / 3);
        }
        // Nothing may tell the time. Threads that begin at once do not all run at once.
        let between_ns = running_ns - led_ns - last_ns;
        let (least_ns, most_ns) = (first_ns + led_ns, end_ns - last_ns - between_ns);
        let between_start_ns = match ran_ns {
            Some(ran_ns) => ran_ns
                .saturating_sub(between_ns / 2)
                .clamp(least_ns, most_ns),
            None => least_ns + part(most_ns - least_ns, self.lane.thread),
        };
        let runs = [
            (first_ns, led_ns),
            (between_start_ns, between_ns),
            (end_ns - last_ns, last_ns),
        ];
        if first_ns > start_ns {
            self.change(Now::Runnable, Leaves::Runnable, start_ns);
            runnable_ns = 0;
        }
        let mut at_ns = first_ns;
        let runs = runs.into_iter().filter(|(_, length_ns)| *length_ns > 0);
        for (run_ns, length_ns) in runs.chain([(end_ns, 0)]) {
            // Before it runs a thread is runnable, and blocked before that.
            let woken_ns = run_ns - runnable_ns.min(run_ns - at_ns);
            if woken_ns > at_ns {
                self.change(Now::Blocked, Leaves::Sleeping, at_ns);
            }
            if run_ns > woken_ns {
                self.change(Now::Runnable, Leaves::Runnable, woken_ns);
                runnable_ns -= run_ns - woken_ns;
            }
            if length_ns > 0 {
                self.change(Now::Running, Leaves::Never, run_ns);
            }
            at_ns = run_ns + length_ns;
        }
    }

    /// Ends what is known of the lane.
    fn stop(&mut self, is_dead: bool, at_ns: u64) {
        if is_dead {
            self.change(Now::Dead, Leaves::Dead, at_ns);
        } else {
            self.change(Now::Unknown, Leaves::Unknown, at_ns);
        }
    }

    /// Changes the state. `leaves` is how a thread leaves a CPU for it.
    fn change(&mut self, next: Now, leaves: Leaves, at_ns: u64) {
        if self.now == next {
            // The waker of the wait before is not that of the whole wait.
            self.waker = NOBODY;
            return;
        }
        match self.now {
            Now::Running => self.leave(leaves, at_ns),
            Now::Blocked if matches!(next, Now::Running | Now::Runnable) => {
                self.woken = Some((at_ns, self.waker));
            }
            _ => {}
        }
        let is_woken = self.now == Now::Blocked && next == Now::Runnable;
        if next == Now::Running {
            self.enter(at_ns, Leaves::Never);
        } else if self.now != Now::Running && !is_woken {
            self.enter(at_ns, leaves);
        }
        self.now = next;
        self.waker = NOBODY;
    }

    /// Begins a stay, which has no length yet.
    fn enter(&mut self, at_ns: u64, leaves: Leaves) {
        let (woken_ns, waker) = self.woken.take().unwrap_or((u64::MAX, NOBODY));
        self.stays.push(Stay {
            start_ns: at_ns,
            end_ns: at_ns,
            woken_ns,
            waker,
            thread: self.lane.thread,
            cpu: NO_CPU,
            is_seen: false,
            leaves,
        });
    }

    /// Ends the stay.
    fn leave(&mut self, leaves: Leaves, at_ns: u64) {
        if let Some(stay) = self.stays.last_mut() {
            stay.end_ns = at_ns;
            stay.leaves = leaves;
            let cpu = self.lane.cpu(stay.start_ns, at_ns);
            (stay.cpu, stay.is_seen) = cpu.unwrap_or((NO_CPU, false));
        }
    }

    /// Ends the lane at the end of the window, which ends no state.
    fn close(&mut self, at_ns: u64) {
        if self.now == Now::Running {
            self.leave(Leaves::Never, at_ns);
        } else if self.woken.is_some() {
            self.enter(at_ns, Leaves::WithoutRunning);
        }
    }
}

/// Returns a part of a length that differs from thread to thread, by multiples of the golden ratio.
fn part(length_ns: u64, thread: u32) -> u64 {
    let fraction = thread.wrapping_mul(0x9e37_79b9);
    ((u128::from(length_ns) * u128::from(fraction)) >> 32) as u64
}

/// Returns how a thread leaves a CPU for a wait.
fn blocked(profile: &Profile, row: &Row) -> Leaves {
    let sample = row.sample.and_then(|id| profile.samples.row(id));
    let wait = sample.and_then(|(sample, _)| profile.wait(sample));
    match wait.map(|wait| wait.kind.reason) {
        Some(
            Reason::DiskRead
            | Reason::DiskWrite
            | Reason::PageFault
            | Reason::KernelLock
            | Reason::Memory,
        ) => Leaves::Uninterruptible,
        _ => Leaves::Sleeping,
    }
}
