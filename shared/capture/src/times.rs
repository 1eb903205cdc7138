//! Converts rows of time between a profile and a capture.

use super::Error;
use super::budget::Budget;
use super::proto;
use super::rows::{FRAME_BYTES, optional, row, same_length, state};
use super::stream::{KeySamples, LanePart};
use super::write::{number, optional as optional_number, state as state_number};
use std::collections::BTreeMap;

use profile::{
    Clock, Id, Interval, Name, Profile, RequestSpan, Sample, Shares, State, Thread, ThreadChange,
    ThreadEvent, ThreadId, TimedSample,
};

/// Maximum CPUs of a machine: eight times the maximum of Linux on x86-64.
const MAX_CPUS: u32 = 1 << 16;

/// Number of an interval that passed in several states.
const MIXED: u32 = 4;

/// Previous instant of a record. The record stores each instant as the difference from it.
#[derive(Default)]
pub(super) struct Instants(u64);

impl Instants {
    pub(super) fn put(&mut self, instant: u64) -> i64 {
        let before = std::mem::replace(&mut self.0, instant);
        instant.wrapping_sub(before).cast_signed()
    }

    fn take(&mut self, difference: i64) -> u64 {
        self.0 = self.0.wrapping_add_signed(difference);
        self.0
    }
}

pub(super) fn put_intervals(rows: &mut dyn Iterator<Item = &Interval>) -> proto::Intervals {
    let mut put = proto::Intervals::default();
    let mut starts = Instants::default();
    for interval in rows {
        put.pids.push(interval.thread.pid);
        put.tids.push(interval.thread.tid);
        put.starts.push(starts.put(interval.start_ns));
        let shares = interval.shares;
        if shares.is_mixed() {
            put.states.push(MIXED);
            put.lengths.push(shares.running_ns);
            put.runnable.push(shares.runnable_ns);
            put.blocked.push(shares.blocked_ns);
        } else {
            put.states.push(state_number(Some(interval.state())));
            put.lengths.push(interval.length_ns());
        }
        put.samples.push(optional_number(interval.sample));
    }
    put
}

pub(super) fn put_timed_samples(
    rows: &mut dyn Iterator<Item = &TimedSample>,
) -> proto::TimedSamples {
    let mut put = proto::TimedSamples::default();
    let mut times = Instants::default();
    for timed in rows {
        put.pids.push(timed.thread.pid);
        put.tids.push(timed.thread.tid);
        put.cpus.push(timed.cpu);
        put.times.push(times.put(timed.time_ns));
        put.samples.push(number(timed.sample));
    }
    put
}

pub(super) fn put_request_spans(
    rows: &mut dyn Iterator<Item = &RequestSpan>,
) -> proto::RequestSpans {
    let mut put = proto::RequestSpans::default();
    let mut starts = Instants::default();
    for span in rows {
        put.names.push(number(span.name));
        put.pids.push(span.thread.pid);
        put.tids.push(span.thread.tid);
        put.starts.push(starts.put(span.start_ns));
        let length = span.end_ns.saturating_sub(span.start_ns);
        put.lengths.push(length);
        put.parents.push(optional_number(span.parent));
    }
    put
}

/// Adds intervals. `samples` are the samples by their numbers in the file.
pub(super) fn take_intervals(
    profile: &mut Profile,
    rows: &proto::Intervals,
    samples: &[Id<Sample>],
    budget: &mut Budget<'_>,
) -> Result<(), Error> {
    let count = rows.pids.len();
    let columns = [rows.tids.len(), rows.starts.len(), rows.lengths.len()];
    same_length(count, columns)?;
    same_length(count, [rows.states.len(), rows.samples.len()])?;
    same_length(rows.runnable.len(), [rows.blocked.len()])?;
    budget.take_rows::<Interval>(count, 0)?;
    let mut starts = Instants::default();
    let mut mixed = rows.runnable.iter().zip(&rows.blocked);
    for index in 0..count {
        let interval = Interval {
            thread: thread(rows.pids[index], rows.tids[index]),
            start_ns: starts.take(rows.starts[index]),
            shares: shares(rows.states[index], rows.lengths[index], &mut mixed)?,
            sample: optional(samples, rows.samples[index])?,
        };
        end(interval.start_ns, interval.length_ns())?;
        budget.take_counts([interval.length_ns()])?;
        profile.times.intervals.push(interval);
    }
    match mixed.next() {
        None => Ok(()),
        Some(_) => Err(UNEVEN),
    }
}

/// Rows of a timeline that refer to keys, until the samples of the keys are known.
#[derive(Default)]
pub(super) struct Keyed {
    /// Places of intervals, each with the number of its key.
    intervals: Vec<(u32, u32)>,
    /// Thread, CPU, time in ns and number of the key.
    samples: Vec<(ThreadId, u32, u64, u32)>,
    keys: Vec<KeySamples>,
}

impl Keyed {
    /// Adds parts of lanes.
    pub(super) fn take_lanes(
        &mut self,
        profile: &mut Profile,
        rows: &proto::Lanes,
        budget: &mut Budget<'_>,
    ) -> Result<(), Error> {
        let count = rows.pids.len();
        let columns = [rows.tids.len(), rows.starts.len(), rows.running.len()];
        same_length(count, columns)?;
        same_length(count, [rows.runnable.len(), rows.blocked.len()])?;
        let after = [rows.blocked_after.len(), rows.runnable_after.len()];
        same_length(count, after)?;
        same_length(count, [rows.keys.len()])?;
        budget.take_rows::<[Interval; 3]>(count, 0)?;
        let mut starts = Instants::default();
        for index in 0..count {
            let part = LanePart {
                thread: thread(rows.pids[index], rows.tids[index]),
                start_ns: starts.take(rows.starts[index]),
                stretch: Shares {
                    running_ns: rows.running[index],
                    runnable_ns: rows.runnable[index],
                    blocked_ns: rows.blocked[index],
                },
                blocked_ns: rows.blocked_after[index],
                runnable_ns: rows.runnable_after[index],
                key: rows.keys[index].checked_sub(1),
            };
            let stretch_ns = part.stretch.total_ns();
            for interval in part.intervals(KeySamples::default()) {
                let Shares {
                    running_ns,
                    runnable_ns,
                    blocked_ns,
                } = interval.shares;
                budget.take_counts([running_ns, runnable_ns, blocked_ns])?;
                end(interval.start_ns, interval.length_ns())?;
                let place = profile.times.intervals.len() as u32;
                let is_stretch = interval.start_ns == part.start_ns && stretch_ns > 0;
                let key = part.key.filter(|_| !is_stretch);
                self.intervals.extend(key.map(|key| (place, key)));
                profile.times.intervals.push(interval);
            }
        }
        Ok(())
    }

    /// Adds timed samples.
    pub(super) fn take_samples(
        &mut self,
        rows: &proto::LaneSamples,
        budget: &mut Budget<'_>,
    ) -> Result<(), Error> {
        let count = rows.pids.len();
        same_length(count, [rows.tids.len(), rows.cpus.len()])?;
        same_length(count, [rows.times.len(), rows.keys.len()])?;
        budget.take_rows::<(TimedSample, u32)>(count, 0)?;
        let mut times = Instants::default();
        for index in 0..count {
            let key = rows.keys[index].checked_sub(1).ok_or(NO_KEY)?;
            let time_ns = times.take(rows.times[index]);
            let thread = thread(rows.pids[index], rows.tids[index]);
            let cpu = checked_cpu(rows.cpus[index])?;
            self.samples.push((thread, cpu, time_ns, key));
        }
        Ok(())
    }

    /// Adds the samples of keys. `samples` are the samples by their numbers in the file.
    pub(super) fn take_keys(
        &mut self,
        rows: &proto::LaneKeys,
        samples: &[Id<Sample>],
        budget: &mut Budget<'_>,
    ) -> Result<(), Error> {
        same_length(rows.samples.len(), [rows.runnable.len()])?;
        budget.take_rows::<KeySamples>(rows.samples.len(), 0)?;
        for (sample, runnable) in rows.samples.iter().zip(&rows.runnable) {
            self.keys.push(KeySamples {
                sample: optional(samples, *sample)?,
                runnable: optional(samples, *runnable)?,
            });
        }
        Ok(())
    }

    /// Gives the rows their samples, at the end of a whole capture.
    pub(super) fn settle(&mut self, profile: &mut Profile) -> Result<(), Error> {
        let keys = std::mem::take(&mut self.keys);
        let key = |key: u32| keys.get(key as usize).copied().ok_or(NO_KEY);
        for (place, number) in std::mem::take(&mut self.intervals) {
            let key = key(number)?;
            if let Some(interval) = profile.times.intervals.get_mut(place as usize) {
                interval.sample = match interval.state() {
                    State::Runnable => key.runnable,
                    State::Running | State::Blocked => key.sample,
                };
            }
        }
        for (thread, cpu, time_ns, number) in std::mem::take(&mut self.samples) {
            let sample = key(number)?.sample;
            let timed = sample.map(|sample| TimedSample {
                thread,
                cpu,
                time_ns,
                sample,
            });
            profile.times.timed_samples.extend(timed);
        }
        Ok(())
    }
}

/// Gives the threads of lanes accounts, in a capture that ends before its tables.
pub(super) fn add_accounts(profile: &mut Profile) {
    if !profile.threads.is_empty() {
        return;
    }
    let mut clocks: BTreeMap<ThreadId, Clock> = BTreeMap::new();
    for interval in &profile.times.intervals {
        let clock = clocks.entry(interval.thread).or_insert(Clock {
            started_ns: interval.start_ns,
            ..Clock::default()
        });
        clock.started_ns = clock.started_ns.min(interval.start_ns);
        clock.ended_ns = clock.ended_ns.max(interval.end_ns());
        clock.running_ns += interval.shares.running_ns;
        clock.runnable_ns += interval.shares.runnable_ns;
        clock.blocked_ns += interval.shares.blocked_ns;
    }
    for (id, clock) in clocks {
        let comm = profile.names.text(&format!("thread {}", id.tid));
        profile.threads.push(Thread { id, comm, clock });
    }
}

/// Error of a row whose key is not in the file.
const NO_KEY: Error = Error::Damaged("a row of time refers to a key that is not in the file");

/// Error of columns of which one has too few or too many entries.
const UNEVEN: Error = Error::Damaged("columns differ in length");

/// Returns the shares of an interval. `mixed` are the remaining entries of intervals that
/// passed in several states.
fn shares<'a>(
    number: u32,
    length_ns: u64,
    mixed: &mut impl Iterator<Item = (&'a u64, &'a u64)>,
) -> Result<Shares, Error> {
    if number == MIXED {
        let (&runnable_ns, &blocked_ns) = mixed.next().ok_or(UNEVEN)?;
        return Ok(Shares {
            running_ns: length_ns,
            runnable_ns,
            blocked_ns,
        });
    }
    let state = match number {
        1..MIXED => state(number),
        _ => None,
    };
    let state = state.ok_or(Error::Damaged("an interval is of no state"))?;
    Ok(Shares::all(state, length_ns))
}

/// Adds timed samples. `samples` are the samples by their numbers in the file.
pub(super) fn take_timed_samples(
    profile: &mut Profile,
    rows: &proto::TimedSamples,
    samples: &[Id<Sample>],
    budget: &mut Budget<'_>,
) -> Result<(), Error> {
    let count = rows.pids.len();
    same_length(count, [rows.tids.len(), rows.cpus.len()])?;
    same_length(count, [rows.times.len(), rows.samples.len()])?;
    budget.take_rows::<TimedSample>(count, 0)?;
    let mut times = Instants::default();
    for index in 0..count {
        let timed = TimedSample {
            thread: thread(rows.pids[index], rows.tids[index]),
            cpu: checked_cpu(rows.cpus[index])?,
            time_ns: times.take(rows.times[index]),
            sample: row(samples, rows.samples[index])?,
        };
        profile.times.timed_samples.push(timed);
    }
    Ok(())
}

pub(super) fn put_thread_events(
    rows: &mut dyn Iterator<Item = &ThreadEvent>,
) -> proto::ThreadEvents {
    let mut put = proto::ThreadEvents::default();
    let mut times = Instants::default();
    for event in rows {
        let (change, name) = match event.change {
            ThreadChange::Started => (1, None),
            ThreadChange::Ended => (2, None),
            ThreadChange::Executed(name) => (3, Some(name)),
            ThreadChange::Renamed(name) => (4, Some(name)),
        };
        put.pids.push(event.thread.pid);
        put.tids.push(event.thread.tid);
        put.times.push(times.put(event.time_ns));
        put.changes.push(change);
        put.names.push(optional_number(name));
    }
    put
}

/// Adds thread events. `names` are the names by their numbers in the file.
pub(super) fn take_thread_events(
    profile: &mut Profile,
    rows: &proto::ThreadEvents,
    names: &[Name],
    budget: &mut Budget<'_>,
) -> Result<(), Error> {
    let count = rows.pids.len();
    same_length(count, [rows.tids.len(), rows.times.len()])?;
    same_length(count, [rows.changes.len(), rows.names.len()])?;
    budget.take_rows::<ThreadEvent>(count, 0)?;
    let mut times = Instants::default();
    for index in 0..count {
        let name = optional(names, rows.names[index])?;
        let change = match (rows.changes[index], name) {
            (1, None) => ThreadChange::Started,
            (2, None) => ThreadChange::Ended,
            (3, Some(name)) => ThreadChange::Executed(name),
            (4, Some(name)) => ThreadChange::Renamed(name),
            _ => return Err(Error::Damaged("an event of a thread is of no kind")),
        };
        // Formats write each event with its name.
        let name_bytes = name.map_or(0, |name| profile.names[name].len() as u64);
        budget.take_written(FRAME_BYTES + name_bytes)?;
        profile.times.thread_events.push(ThreadEvent {
            thread: thread(rows.pids[index], rows.tids[index]),
            time_ns: times.take(rows.times[index]),
            change,
        });
    }
    Ok(())
}

/// Error for a span that comes before its parent.
const ORPHAN: Error = Error::Damaged("a span comes before its parent");

/// Adds request spans. `names` are the names by their numbers in the file.
pub(super) fn take_request_spans(
    profile: &mut Profile,
    rows: &proto::RequestSpans,
    names: &[Name],
    budget: &mut Budget<'_>,
) -> Result<(), Error> {
    let count = rows.names.len();
    let columns = [rows.pids.len(), rows.tids.len(), rows.starts.len()];
    same_length(count, columns)?;
    same_length(count, [rows.lengths.len(), rows.parents.len()])?;
    budget.take_rows::<RequestSpan>(count, 0)?;
    let mut starts = Instants::default();
    for index in 0..count {
        let name = row(names, rows.names[index])?;
        let (start_ns, length_ns) = (starts.take(rows.starts[index]), rows.lengths[index]);
        let spans = &profile.times.request_spans;
        let parent = rows.parents[index].checked_sub(1);
        let parent = parent.map(|parent| spans.id(parent as usize).ok_or(ORPHAN));
        let span = RequestSpan {
            name,
            thread: thread(rows.pids[index], rows.tids[index]),
            start_ns,
            end_ns: end(start_ns, length_ns)?,
            parent: parent.transpose()?,
        };
        // Formats write each span with its name.
        budget.take_written(FRAME_BYTES + profile.names[name].len() as u64)?;
        budget.take_counts([length_ns])?;
        let added = profile.times.request_spans.add(span);
        added.ok_or(ORPHAN)?;
    }
    Ok(())
}

fn checked_cpu(cpu: u32) -> Result<u32, Error> {
    if cpu >= MAX_CPUS {
        return Err(Error::Damaged("a CPU has a number beyond any machine's"));
    }
    Ok(cpu)
}

fn thread(pid: u32, tid: u32) -> ThreadId {
    ThreadId { pid, tid }
}

fn end(start_ns: u64, length_ns: u64) -> Result<u64, Error> {
    let end_ns = start_ns.checked_add(length_ns);
    end_ns.ok_or(Error::Damaged("a time is beyond what a clock tells"))
}
