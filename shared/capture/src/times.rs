//! Converts rows of time between a profile and a capture.

use super::Error;
use super::budget::Budget;
use super::proto;
use super::rows::{FRAME_BYTES, optional, row, same_length, state};
use super::write::{number, optional as optional_number, state as state_number};
use profile::{Id, Interval, Name, Profile, RequestSpan, Sample, ThreadId, TimedSample};

/// Maximum CPUs of a machine: eight times the maximum of Linux on x86-64.
const MOST_CPUS: u32 = 1 << 16;

/// Previous instant of a record. The record stores each instant as the difference from it.
#[derive(Default)]
struct Instants(u64);

impl Instants {
    fn put(&mut self, instant: u64) -> i64 {
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
        put.lengths.push(interval.length_ns);
        put.states.push(state_number(Some(interval.state)));
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
    budget.take_rows::<Interval>(count, 0)?;
    let mut starts = Instants::default();
    for index in 0..count {
        let interval = Interval {
            thread: thread(rows.pids[index], rows.tids[index]),
            start_ns: starts.take(rows.starts[index]),
            length_ns: rows.lengths[index],
            state: match rows.states[index] {
                number @ 1..4 => state(number),
                _ => None,
            }
            .ok_or(Error::Damaged("an interval is of no state"))?,
            sample: optional(samples, rows.samples[index])?,
        };
        end(interval.start_ns, interval.length_ns)?;
        budget.take_counts([interval.length_ns])?;
        profile.times.intervals.push(interval);
    }
    Ok(())
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
            cpu: rows.cpus[index],
            time_ns: times.take(rows.times[index]),
            sample: row(samples, rows.samples[index])?,
        };
        if timed.cpu >= MOST_CPUS {
            return Err(Error::Damaged("a CPU has a number beyond any machine's"));
        }
        profile.times.timed_samples.push(timed);
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

fn thread(pid: u32, tid: u32) -> ThreadId {
    ThreadId { pid, tid }
}

fn end(start_ns: u64, length_ns: u64) -> Result<u64, Error> {
    let end_ns = start_ns.checked_add(length_ns);
    end_ns.ok_or(Error::Damaged("a time is beyond what a clock tells"))
}
