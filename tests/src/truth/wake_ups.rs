//! Delays between the wake-up of a thread and the switch to the thread.
//!
//! The kernel's accounts and the clock of the tools differ by four delays. Each delay is on one
//! side only:
//!
//! - *arriving*: in the tools a thread becomes runnable at its wake-up. In schedstat it becomes
//!   runnable when the kernel has put it on a run queue.
//! - *preempting*: if a wake-up preempts the current task, mostly the idle task, the kernel skips
//!   the next update of the run queue's clock. The kernel therefore counts the woken thread as
//!   *running* from its arrival on, although the interrupt has not ended and the CPU has not left
//!   idle. In the tools it runs from the switch on.
//! - *preempted*: for the same reason the kernel counts the preempted thread as running only until
//!   the wake-up that preempts it. In the tools it runs until the switch.
//! - *moved asleep*: since 6.12 a thread that falls asleep may stay on its run queue for a while
//!   (`DELAY_DEQUEUE`). If another CPU takes the thread from there, `enqueue_task()` calls
//!   `sched_info_enqueue()`, which records that the thread waits for that CPU from then on. Nothing
//!   undoes this until the thread runs. The kernel therefore counts the rest of its sleep as
//!   *runnable*.
//!
//! The kernel's own tracing measures these delays without the tools, for the same threads at the
//! same time. The events are `sched_waking`, `sched_wakeup`, `sched_switch` and
//! `sched_migrate_task`. A machine that hides context switches from the tools hides them from the
//! tracing, too. At times it hides all switches of a CPU. If one event of a wake-up was not seen,
//! its delay counts as the median of the others.

use std::collections::BTreeMap;

use crate::now_ns;
use crate::truth::account::threads_of;
use crate::truth::tracing::Tracing;

/// Tracing of the wake-ups of some threads.
#[derive(Debug)]
pub struct WakeUps {
    threads: Vec<u32>,
    tracing: Tracing,
    /// Time before which events do not count, in ns of CLOCK_MONOTONIC.
    since_ns: u64,
}

/// Sums of the delays of a thread, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// Time from each wake-up until the thread was on a run queue.
    pub arriving_ns: u64,
    /// Time from there to the switch, if the wake-up preempted the current task.
    pub preempting_ns: u64,
    /// Time from wake-ups of other threads that preempted this thread to the switch.
    pub preempted_ns: u64,
    /// Time from moves of the sleeping thread to another CPU until its wake-up.
    pub moved_asleep_ns: u64,
}

impl WakeUps {
    /// Starts to trace the current threads of a process.
    ///
    /// # Panics
    ///
    /// Panics on a kernel without tracefs, or without root.
    pub fn watch(pid: u32) -> WakeUps {
        let threads = threads_of(pid);
        let tracing = Tracing::start(
            &threads,
            &[
                ("sched/sched_waking", &["pid"]),
                ("sched/sched_wakeup", &["pid", "common_pid"]),
                ("sched/sched_switch", &["next_pid", "prev_pid"]),
                ("sched/sched_migrate_task", &["pid"]),
            ],
        );
        WakeUps {
            threads,
            tracing,
            since_ns: 0,
        }
    }

    /// Leaves out the events so far. The kernel keeps them, because dropping them takes a second
    /// under load.
    pub fn begin(&mut self) {
        self.since_ns = now_ns();
    }

    /// Stops tracing, and returns the delays since the beginning, by thread.
    ///
    /// # Panics
    ///
    /// Panics if the buffers were too small for all events.
    pub fn stop(self) -> BTreeMap<u32, Delays> {
        delays(&self.tracing.stop(), &self.threads, self.since_ns)
    }
}

/// Returns the sum over all threads.
pub fn total(delays: &BTreeMap<u32, Delays>) -> Delays {
    delays.values().fold(Delays::default(), |sum, one| Delays {
        arriving_ns: sum.arriving_ns + one.arriving_ns,
        preempting_ns: sum.preempting_ns + one.preempting_ns,
        preempted_ns: sum.preempted_ns + one.preempted_ns,
        moved_asleep_ns: sum.moved_asleep_ns + one.moved_asleep_ns,
    })
}

/// State of a thread between its wake-up and the switch to it.
#[derive(Clone, Copy)]
enum Way {
    Woken {
        ns: u64,
    },
    /// The thread is on a run queue. `preempts` is set if the thread is known to preempt the
    /// current task.
    Arrived {
        ns: u64,
        preempts: bool,
    },
}

/// Line of the trace.
struct Event<'a> {
    ns: u64,
    /// Current thread.
    current: u32,
    /// True if the current thread is about to be preempted.
    preempts: bool,
    /// Event in the form `switch: … next_pid=19070 next_prio=120`.
    what: &'a str,
}

impl Event<'_> {
    /// Parses ` <idle>-0 [001] d..2. 932.765534: sched_switch: … next_pid=19070 next_prio=120`.
    fn read(line: &str) -> Option<Event<'_>> {
        let (head, what) = line.rsplit_once(": sched_")?;
        let mut words = head.rsplit(' ').filter(|word| !word.is_empty());
        let ns = words.next().and_then(nanoseconds);
        let flags = words.next().unwrap_or_default();
        let current = words.nth(1).and_then(|word| word.rsplit_once('-'));
        let current = current.and_then(|(_, tid)| tid.parse().ok());
        let (Some(ns), Some(current)) = (ns, current) else {
            panic!("no time or thread in {line:?}");
        };
        Some(Event {
            ns,
            current,
            preempts: matches!(flags.as_bytes().get(1), Some(b'N' | b'n' | b'B' | b'b')),
            what,
        })
    }

    fn number(&self, field: &str) -> Option<u32> {
        let mut words = self.what.split_whitespace();
        words
            .find_map(|word| word.strip_prefix(field))?
            .parse()
            .ok()
    }
}

/// Returns the delays of `threads` in the trace, without events before `since_ns`.
fn delays(trace: &str, threads: &[u32], since_ns: u64) -> BTreeMap<u32, Delays> {
    let mut account = Account {
        threads,
        ways: BTreeMap::new(),
        asleep: BTreeMap::new(),
        to_be_preempted: BTreeMap::new(),
        delays: BTreeMap::new(),
        arriving: Vec::new(),
        unseen_arrivals: Vec::new(),
        preempting: Vec::new(),
        unseen: Vec::new(),
    };
    let events = trace.lines().filter_map(Event::read);
    for event in events.filter(|event| event.ns >= since_ns) {
        match event.what.split_once(':') {
            Some(("waking", _)) => account.waking(&event),
            Some(("wakeup", _)) => account.wakeup(&event),
            Some(("migrate_task", _)) => account.moved(&event),
            _ => account.switch(&event),
        }
    }
    account.settle()
}

/// State of the traced threads after an event.
struct Account<'a> {
    threads: &'a [u32],
    ways: BTreeMap<u32, Way>,
    /// Sleeping threads, each with the time of its move to another CPU if there was one.
    asleep: BTreeMap<u32, Option<u64>>,
    /// Running threads that are about to be preempted, with the time since when.
    to_be_preempted: BTreeMap<u32, u64>,
    delays: BTreeMap<u32, Delays>,
    /// All *arriving* delays in ns.
    arriving: Vec<u64>,
    /// Threads with a wake-up or an arrival without the other one.
    unseen_arrivals: Vec<u32>,
    /// All *preempting* delays in ns.
    preempting: Vec<u64>,
    /// Threads that preempted another thread, and whose switch was not seen.
    unseen: Vec<u32>,
}

impl Account<'_> {
    /// Returns the thread in a field if the thread is traced.
    fn thread(&self, event: &Event<'_>, field: &str) -> Option<u32> {
        let tid = event.number(field);
        tid.filter(|tid| self.threads.contains(tid))
    }

    fn waking(&mut self, event: &Event<'_>) {
        let Some(tid) = self.thread(event, "pid=") else {
            return;
        };
        self.leave_cpu(tid);
        self.ways.insert(tid, Way::Woken { ns: event.ns });
        if let Some(Some(moved)) = self.asleep.remove(&tid) {
            let moved_asleep_ns = event.ns.saturating_sub(moved);
            self.delays.entry(tid).or_default().moved_asleep_ns += moved_asleep_ns;
        }
    }

    fn moved(&mut self, event: &Event<'_>) {
        let asleep = self.thread(event, "pid=");
        if let Some(moved) = asleep.and_then(|tid| self.asleep.get_mut(&tid)) {
            moved.get_or_insert(event.ns);
        }
    }

    fn wakeup(&mut self, event: &Event<'_>) {
        let Event { ns, preempts, .. } = *event;
        if preempts && self.threads.contains(&event.current) {
            self.to_be_preempted.insert(event.current, ns);
        }
        let Some(tid) = self.thread(event, "pid=") else {
            return;
        };
        match self.ways.insert(tid, Way::Arrived { ns, preempts }) {
            Some(Way::Woken { ns: woken }) => {
                let took = ns.saturating_sub(woken);
                self.delays.entry(tid).or_default().arriving_ns += took;
                self.arriving.push(took);
            }
            _ => self.unseen_arrivals.push(tid),
        }
    }

    fn switch(&mut self, event: &Event<'_>) {
        let Event { ns, .. } = *event;
        if let Some(tid) = self.thread(event, "prev_pid=") {
            if let Some(since) = self.to_be_preempted.remove(&tid) {
                let preempted_ns = ns.saturating_sub(since);
                self.delays.entry(tid).or_default().preempted_ns += preempted_ns;
            }
            self.leave_cpu(tid);
            if !event.what.contains("prev_state=R") {
                self.asleep.insert(tid, None);
            }
        }
        let Some(tid) = self.thread(event, "next_pid=") else {
            return;
        };
        self.asleep.remove(&tid);
        self.to_be_preempted.remove(&tid);
        let (arrived, preempts) = match self.ways.remove(&tid) {
            Some(Way::Arrived { ns, preempts }) => (ns, preempts),
            Some(Way::Woken { .. }) => return self.unseen_arrivals.push(tid),
            None => return,
        };
        // The flags do not show a wake-up from another CPU, but every wake-up preempts the idle
        // task.
        if preempts || event.number("prev_pid=") == Some(0) {
            let took = ns.saturating_sub(arrived);
            self.delays.entry(tid).or_default().preempting_ns += took;
            self.preempting.push(took);
        }
    }

    /// Forgets how the thread got its CPU, after the thread has left it.
    fn leave_cpu(&mut self, tid: u32) {
        self.to_be_preempted.remove(&tid);
        match self.ways.remove(&tid) {
            Some(Way::Arrived { preempts: true, .. }) => self.unseen.push(tid),
            Some(Way::Woken { .. }) => self.unseen_arrivals.push(tid),
            _ => {}
        }
    }

    fn settle(mut self) -> BTreeMap<u32, Delays> {
        let (arriving, preempting) = (median(self.arriving), median(self.preempting));
        for tid in self.unseen_arrivals {
            self.delays.entry(tid).or_default().arriving_ns += arriving;
        }
        for tid in self.unseen {
            self.delays.entry(tid).or_default().preempting_ns += preempting;
        }
        self.delays
    }
}

fn median(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}

/// Parses seconds with six decimals.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, micros) = text.split_once('.')?;
    let micros: u64 = micros.parse().ok()?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + micros * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Turn, Workload, accounts_at_rest};

    #[test]
    fn wake_ups_take_less_than_the_time_off_the_cpu() {
        let _turn = Turn::take();
        let mut naps = Workload::start("naps", &[1]);
        let pid = naps.pid();
        accounts_at_rest(pid);
        let wake_ups = WakeUps::watch(pid);
        naps.go();
        naps.wait_done();
        let took = total(&wake_ups.stop());
        assert!(took.arriving_ns > 0, "{took:?}");
        assert!(
            took.arriving_ns + took.preempting_ns < naps.told("naps"),
            "{took:?}"
        );
    }

    fn trace(flags: &str, previous: u32) -> String {
        format!(
            "# entries-in-buffer/entries-written: 3/3   #P:2\n\
             a b-19 [001] d.h2.   932.765100: sched_waking: comm=x: y pid=7 prio=120 target_cpu=001\n\
             a b-19 [001] {flags}   932.765104: sched_wakeup: comm=x: y pid=7 prio=120 target_cpu=001\n\
             a b-19 [001] d..2.   932.765134: sched_switch: prev_comm=a b prev_pid={previous} prev_prio=120 prev_state=R ==> next_comm=x: y next_pid=7 next_prio=120\n"
        )
    }

    #[test]
    fn a_wake_up_that_preempts_is_told_from_one_that_waits() {
        let one = |preempting_ns| {
            let arriving_ns = 4000;
            BTreeMap::from([(
                7,
                Delays {
                    arriving_ns,
                    preempting_ns,
                    ..Delays::default()
                },
            )])
        };
        assert_eq!(delays(&trace("dNh3.", 19), &[7], 0), one(30_000));
        assert_eq!(delays(&trace("d.h3.", 0), &[7], 0), one(30_000));
        assert_eq!(delays(&trace("d.h3.", 19), &[7], 0), one(0));
        let before = 932_765_105_000;
        assert_eq!(delays(&trace("d.h3.", 0), &[7], before), BTreeMap::new());
    }

    #[test]
    fn who_is_preempted_ran_until_the_switch() {
        let preempted_ns = 30_000;
        let delays_of_it = Delays {
            preempted_ns,
            ..Delays::default()
        };
        let of_it = |flags| delays(&trace(flags, 19), &[19], 0);
        assert_eq!(of_it("dNh3."), BTreeMap::from([(19, delays_of_it)]));
        assert_eq!(of_it("d.h3."), BTreeMap::new());
    }

    #[test]
    fn who_is_moved_asleep_is_not_until_it_is_woken() {
        let asleep = "a b-7 [000] d..2.   932.765000: sched_switch: prev_comm=x: y prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=a b next_pid=19 next_prio=120\n";
        let moved = "a b-19 [001] d..3.   932.765060: sched_migrate_task: comm=x: y pid=7 prio=120 orig_cpu=0 dest_cpu=1\n";
        let woken = trace("d.h3.", 19);
        let moved_asleep = |trace: &str| delays(trace, &[7], 0)[&7].moved_asleep_ns;
        assert_eq!(moved_asleep(&format!("{asleep}{moved}{woken}")), 40_000);
        assert_eq!(moved_asleep(&format!("{asleep}{woken}")), 0);
        let preempted = asleep.replace("prev_state=S", "prev_state=R+");
        assert_eq!(moved_asleep(&format!("{preempted}{moved}{woken}")), 0);
    }

    #[test]
    fn a_switch_that_was_not_seen_took_as_long_as_others() {
        let seen = trace("dNh3.", 19);
        let unseen: Vec<&str> = seen
            .lines()
            .filter(|line| !line.contains("switch"))
            .collect();
        let unseen = unseen.join("\n");
        let twice = delays(&format!("{unseen}\n{seen}"), &[7], 0);
        assert_eq!(twice[&7].preempting_ns, 60_000);
        assert_eq!(twice[&7].arriving_ns, 8000);
    }
}
