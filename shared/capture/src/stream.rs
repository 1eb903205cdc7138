//! Captures that are written while a tool measures: the timeline first, then the tables.
//!
//! Parts of lanes and timed samples refer to keys. The samples of the keys follow at the end, when
//! the stacks have names.

use std::io::{self, Write};

use profile::{Id, Interval, Profile, Sample, Shares, State, ThreadId};
use zstd::Encoder;

use super::times::Instants;
use super::write::{LEVEL, Records, optional};
use super::{MAGIC, ROWS, VERSION, proto};
use proto::record::Kind;

/// Part of a thread's lane: a stretch of running and short stays, then a blocked and a runnable
/// interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanePart {
    /// The thread.
    pub thread: ThreadId,
    /// Start of the stretch, in ns of CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// Time of the stretch in each state.
    pub stretch: Shares,
    /// Length of the blocked interval after the stretch, in ns; 0 if there is none.
    pub blocked_ns: u64,
    /// Length of the runnable interval after the blocked one, in ns; 0 if there is none.
    pub runnable_ns: u64,
    /// Number of the key under which the two intervals are counted.
    pub key: Option<u32>,
}

impl LanePart {
    /// Returns the intervals of the part, in the order of time.
    pub fn intervals(&self, key: KeySamples) -> impl Iterator<Item = Interval> + use<> {
        let LanePart {
            thread,
            start_ns,
            stretch,
            ..
        } = *self;
        let blocked_ns = start_ns.saturating_add(stretch.total_ns());
        let runnable_ns = blocked_ns.saturating_add(self.blocked_ns);
        let blocked = Shares::all(State::Blocked, self.blocked_ns);
        let runnable = Shares::all(State::Runnable, self.runnable_ns);
        let rows = [
            (start_ns, stretch, None),
            (blocked_ns, blocked, key.sample),
            (runnable_ns, runnable, key.runnable),
        ];
        let rows = rows.into_iter();
        let rows = rows.map(move |(start_ns, shares, sample)| Interval {
            thread,
            start_ns,
            shares,
            sample,
        });
        rows.filter(|interval| interval.length_ns() > 0)
    }
}

/// A sample with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneSample {
    /// The thread.
    pub thread: ThreadId,
    /// Number of the CPU, as the kernel counts CPUs.
    pub cpu: u32,
    /// Time, in ns of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Number of the key under which the sample is counted.
    pub key: u32,
}

/// Samples of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeySamples {
    /// Sample that counts running or blocked time.
    pub sample: Option<Id<Sample>>,
    /// Sample that counts runnable time.
    pub runnable: Option<Id<Sample>>,
}

/// A capture that is being written.
pub struct Stream<W: Write> {
    records: Records<Encoder<'static, W>>,
}

impl<W: Write> Stream<W> {
    /// Begins a capture. `profile` has the circumstances as far as they are known.
    ///
    /// # Errors
    /// The writer fails.
    pub fn new(mut writer: W, profile: &Profile) -> io::Result<Stream<W>> {
        writer.write_all(&MAGIC)?;
        writer.write_all(&[VERSION])?;
        let mut encoder = Encoder::new(writer, LEVEL)?;
        encoder.include_checksum(true)?;
        let mut records = Records { writer: encoder };
        records.put_meta(profile)?;
        Ok(Stream { records })
    }

    /// Adds rows. A reader of the unfinished file can read them from now on.
    ///
    /// # Errors
    /// The writer fails.
    pub fn add(&mut self, parts: &[LanePart], samples: &[LaneSample]) -> io::Result<()> {
        for some in parts.chunks(ROWS) {
            self.records.put(Kind::Lanes(put_parts(some)))?;
        }
        for some in samples.chunks(ROWS) {
            self.records.put(Kind::LaneSamples(put_samples(some)))?;
        }
        self.records.writer.flush()
    }

    /// Writes the tables of `profile`, and the samples of the keys in the order of their numbers.
    /// The timeline of `profile` has only rows that were not added before. Returns the writer.
    ///
    /// # Errors
    /// The writer fails.
    pub fn finish(mut self, profile: &Profile, keys: &[KeySamples]) -> io::Result<W> {
        self.records.put_profile(profile, |records| {
            records.put_rows(keys.iter(), |rows| {
                let (samples, runnable) = rows
                    .map(|key| (optional(key.sample), optional(key.runnable)))
                    .unzip();
                Kind::LaneKeys(proto::LaneKeys { samples, runnable })
            })
        })?;
        let mut writer = self.records.writer.finish()?;
        writer.flush()?;
        Ok(writer)
    }
}

fn put_parts(parts: &[LanePart]) -> proto::Lanes {
    let mut put = proto::Lanes::default();
    let mut starts = Instants::default();
    for part in parts {
        put.pids.push(part.thread.pid);
        put.tids.push(part.thread.tid);
        put.starts.push(starts.put(part.start_ns));
        put.running.push(part.stretch.running_ns);
        put.runnable.push(part.stretch.runnable_ns);
        put.blocked.push(part.stretch.blocked_ns);
        put.blocked_after.push(part.blocked_ns);
        put.runnable_after.push(part.runnable_ns);
        put.keys.push(part.key.map_or(0, |key| key + 1));
    }
    put
}

fn put_samples(samples: &[LaneSample]) -> proto::LaneSamples {
    let mut put = proto::LaneSamples::default();
    let mut times = Instants::default();
    for sample in samples {
        put.pids.push(sample.thread.pid);
        put.tids.push(sample.thread.tid);
        put.cpus.push(sample.cpu);
        put.times.push(times.put(sample.time_ns));
        put.keys.push(sample.key + 1);
    }
    put
}
