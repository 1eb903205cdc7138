//! Switches and wake-ups as the kernel's ftrace has them, from which Perfetto derives the states
//! of threads, their wakers and the critical path.

pub(super) mod cpus;
mod states;

use std::io;

use profile::Profile;
use prost::bytes::Bytes;

use self::cpus::{MAX_REAL_CPUS, allot};
use self::states::{Ends, Leaves, Stay, add_stays};
use super::lanes::{Lane, NOBODY};
use super::messages::{FtraceEvent, FtraceEventBundle, SchedSwitch, SchedWaking, TracePacket};
use super::packets::{Packets, time};
use super::tracks::Threads;

/// Maximum number of events in a packet.
const MAX_EVENTS: usize = 512;
/// Priority of threads without a nice value, as the kernel counts priorities.
const PRIORITY: i32 = 120;
/// The idle thread of each CPU, which stands for all threads that were not measured.
const IDLE: (i32, &[u8]) = (0, b"swapper");

/// States of a thread that leaves a CPU, as Linux 4.14 and later report them
/// (`include/trace/events/sched.h`).
const RUNNABLE: i64 = 0;
const SLEEPING: i64 = 0x1;
const UNINTERRUPTIBLE: i64 = 0x2;
const DEAD: i64 = 0x10;
/// A state that the kernel does not have, which Perfetto shows as unknown.
const UNKNOWN: i64 = 0x200;

/// The switches and wake-ups of all lanes.
pub(super) struct Switches<'a> {
    profile: &'a Profile,
    threads: &'a Threads,
    ends: Ends,
    stays: Vec<Stay>,
}

impl<'a> Switches<'a> {
    pub(super) fn new(profile: &'a Profile, threads: &'a Threads) -> Switches<'a> {
        let intervals = profile.times.intervals.iter();
        let running = intervals.filter(|interval| interval.shares.running_ns > 0);
        Switches {
            profile,
            threads,
            ends: Ends::new(profile),
            stays: Vec::with_capacity(running.count() + threads.len()),
        }
    }

    /// Adds a lane.
    pub(super) fn add(&mut self, lane: &Lane) {
        if self.threads.kernel_id(lane.thread).is_some() {
            add_stays(self.profile, lane, &self.ends, &mut self.stays);
        }
    }

    /// Writes the events of each CPU.
    pub(super) fn write(mut self, packets: &mut Packets) -> io::Result<()> {
        let first_free = self.number_of_cpus();
        allot(&mut self.stays, first_free);
        let mut stays = &self.stays[..];
        while let Some(first) = stays.first() {
            let end = stays.partition_point(|stay| stay.cpu <= first.cpu);
            let (of_cpu, rest) = stays.split_at(end);
            let mut cpu = Cpu {
                threads: self.threads,
                number: first.cpu,
                events: Vec::new(),
                packets,
            };
            cpu.write(of_cpu)?;
            stays = rest;
        }
        Ok(())
    }

    /// Returns a number of CPUs, of which no real CPU has a higher number.
    fn number_of_cpus(&self) -> u32 {
        let samples = self.profile.times.timed_samples.iter();
        let seen = samples
            .map(|timed| timed.cpu)
            .filter(|cpu| *cpu < MAX_REAL_CPUS);
        let seen = seen.max().map_or(0, |last| last + 1);
        self.profile.meta.cpus.max(seen)
    }
}

/// A writer of the events of a CPU.
struct Cpu<'a, 'b, 'c> {
    threads: &'a Threads,
    number: u32,
    events: Vec<FtraceEvent>,
    packets: &'b mut Packets<'c>,
}

impl Cpu<'_, '_, '_> {
    /// Writes the events of a CPU's stays, which are in the order of their times.
    fn write(&mut self, stays: &[Stay]) -> io::Result<()> {
        let mut last: Option<&Stay> = None;
        for stay in stays {
            if stay.woken_ns != u64::MAX {
                self.put(self.waking(stay))?;
            }
            if stay.leaves == Leaves::WithoutRunning {
                continue;
            }
            if let Some(left) = last.filter(|last| last.end_ns != stay.start_ns) {
                self.put(self.switch(left.end_ns, Some(left), None))?;
                last = None;
            }
            self.put(self.switch(stay.start_ns, last, Some(stay)))?;
            last = Some(stay);
        }
        if let Some(left) = last.filter(|last| last.leaves != Leaves::Never) {
            self.put(self.switch(left.end_ns, Some(left), None))?;
        }
        self.flush()
    }

    fn put(&mut self, event: FtraceEvent) -> io::Result<()> {
        self.events.push(event);
        if self.events.len() < MAX_EVENTS {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        let event = std::mem::take(&mut self.events);
        if event.is_empty() {
            return Ok(());
        }
        self.packets.put_alone(&TracePacket {
            ftrace_events: Some(FtraceEventBundle {
                cpu: Some(self.number),
                event,
            }),
            ..TracePacket::default()
        })
    }

    /// Returns the switch from one stay to another; `None` stands for the idle thread.
    fn switch(&self, at_ns: u64, left: Option<&Stay>, next: Option<&Stay>) -> FtraceEvent {
        let (prev_pid, prev_comm) = self.thread(left.map(|stay| stay.thread));
        let (next_pid, next_comm) = self.thread(next.map(|stay| stay.thread));
        let state = left.map_or(RUNNABLE, |stay| match stay.leaves {
            Leaves::Runnable => RUNNABLE,
            Leaves::Sleeping => SLEEPING,
            Leaves::Uninterruptible => UNINTERRUPTIBLE,
            Leaves::Dead => DEAD,
            Leaves::Unknown | Leaves::Never | Leaves::WithoutRunning => UNKNOWN,
        });
        FtraceEvent {
            timestamp: Some(time(at_ns)),
            pid: Some(prev_pid as u32),
            sched_switch: Some(SchedSwitch {
                prev_comm,
                prev_pid: Some(prev_pid),
                prev_prio: Some(PRIORITY),
                prev_state: Some(state),
                next_comm,
                next_pid: Some(next_pid),
                next_prio: Some(PRIORITY),
            }),
            sched_waking: None,
        }
    }

    /// Returns the wake-up before a stay. Perfetto takes it for the waker's own event on any CPU;
    /// on the CPU of the stay it comes before the switch even if both have the same time.
    fn waking(&self, stay: &Stay) -> FtraceEvent {
        let (waker, _) = self.thread((stay.waker != NOBODY).then_some(stay.waker));
        let (pid, comm) = self.thread(Some(stay.thread));
        FtraceEvent {
            timestamp: Some(time(stay.woken_ns)),
            pid: Some(waker as u32),
            sched_switch: None,
            sched_waking: Some(SchedWaking {
                comm,
                pid: Some(pid),
                prio: Some(PRIORITY),
                success: Some(1),
                target_cpu: Some(self.number as i32),
            }),
        }
    }

    /// Returns the ID and the name of a thread; `None` stands for the idle thread.
    fn thread(&self, place: Option<u32>) -> (i32, Bytes) {
        let (pid, name) = IDLE;
        let known = place.and_then(|place| {
            let id = self.threads.kernel_id(place)?;
            Some((id, self.threads.name(place).clone()))
        });
        known.unwrap_or((pid, Bytes::from_static(name)))
    }
}
