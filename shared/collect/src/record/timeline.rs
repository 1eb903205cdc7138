//! Timeline of a measurement: parts of lanes, samples and names of threads, with their times.
//! Programs send them as `bpf/include/timeline.h` says.

mod keys;
mod recent;

use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bpf::types::{LaneEvent, NameEvent, Returning, SampleEvent, StackKey, TimelineKind};
use capture::{LanePart, LaneSample};
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use loader::iterators::copy;
use loader::{Context, LoadedObject, OpenObject, Result, Variable, monotonic_ns};
use profile::{Shares, ThreadId};

use crate::record::collector::consume;
use crate::record::counts::Arrived;
use crate::record::sums::Sums;

use keys::Keys;
pub use recent::{Delay, Recorder, Trigger};
pub(crate) use recent::{Recent, Suspect};

/// Sets whether programs send a timeline, and the minimum length in ns of intervals with a row
/// of their own. A recorder also gets stretches that no interval follows.
pub(crate) fn configure(
    object: &mut OpenObject,
    least_ns: Option<u64>,
    recorder: Option<&Recorder>,
) -> Result<()> {
    let max_stretch_ns = recorder.map_or(u64::MAX, |_| MAX_STRETCH_NS);
    object.set(bpf::constants::TIMELINE_MAX_STRETCH, max_stretch_ns)?;
    object.set(bpf::constants::WANT_TIMELINE, least_ns.is_some())?;
    object.set(bpf::constants::TIMELINE_LEAST, least_ns.unwrap_or(0))?;
    for program in PROGRAMS {
        if object.has_program(program) {
            object.choose(program, least_ns.is_some())?;
        }
    }
    if least_ns.is_none() {
        object.make_room(bpf::maps::TIMELINE, rustix::param::page_size() as u32)?;
    }
    Ok(())
}

/// Programs that send the names of threads.
pub(crate) const PROGRAMS: [bpf::ProgramName; 2] =
    [bpf::programs::NOTE_RENAME, bpf::programs::NOTE_EXEC];

/// Receiver of rows while programs run: it gets each row once.
pub type RowSink = Box<dyn FnMut(&[LanePart], &[LaneSample]) -> io::Result<()>>;

/// Length from which a recorder gets a stretch that no interval follows, in ns. The recorder drops
/// a stretch in which its first instant lies.
const MAX_STRETCH_NS: u64 = 10_000_000;

/// Rows that are kept before they go to the sink.
const ROWS_KEPT: usize = 4096;
/// Maximum time that rows are kept before they go to the sink.
const KEPT_FOR: Duration = Duration::from_secs(1);

/// Rows of a timeline.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) keys: Keys,
    pub(crate) parts: Vec<LanePart>,
    pub(crate) samples: Vec<LaneSample>,
    pub(crate) names: Vec<NameEvent>,
}

impl Rows {
    fn take(&mut self, message: &[u8]) {
        match copy(message).map(TimelineKind) {
            Some(TimelineKind::TIMELINE_LANE) => self.take_part(message),
            Some(TimelineKind::TIMELINE_SAMPLE) => self.take_sample(message),
            Some(TimelineKind::TIMELINE_RENAME | TimelineKind::TIMELINE_EXEC) => {
                self.names.extend(copy::<NameEvent>(message));
            }
            _ => {}
        }
    }

    fn take_part(&mut self, message: &[u8]) {
        if let Some(event) = copy::<LaneEvent>(message) {
            self.add_part(&event.part, event.key, event.is_counted != 0);
        }
    }

    fn add_part(&mut self, part: &bpf::types::LanePart, key: StackKey, is_counted: bool) {
        let StackKey { pid, tid, .. } = key;
        self.parts.push(LanePart {
            thread: ThreadId { pid, tid },
            start_ns: part.start,
            stretch: Shares {
                running_ns: part.stretch.running,
                runnable_ns: part.stretch.runnable,
                blocked_ns: part.stretch.blocked,
            },
            blocked_ns: part.blocked,
            runnable_ns: part.runnable,
            key: is_counted.then(|| self.keys.number(key)),
        });
    }

    fn take_sample(&mut self, message: &[u8]) {
        let Some(SampleEvent { cpu, time, key, .. }) = copy(message) else {
            return;
        };
        let StackKey { pid, tid, .. } = key;
        self.samples.push(LaneSample {
            thread: ThreadId { pid, tid },
            cpu,
            time_ns: time,
            key: self.keys.number(key),
        });
    }

    /// Returns the number of parts and samples.
    fn count(&self) -> usize {
        self.parts.len() + self.samples.len()
    }
}

/// Timeline of a measurement.
#[derive(Default)]
pub(crate) struct Timeline {
    /// All rows, or the latest rows if a recorder keeps the rows before them.
    pub(crate) rows: Rows,
    pub(crate) recent: Option<Recent>,
    /// Number of messages that found no capacity.
    pub(crate) lost: u64,
}

impl Timeline {
    fn new(recorder: Option<&Recorder>) -> Timeline {
        Timeline {
            recent: recorder.map(Recent::new),
            ..Timeline::default()
        }
    }

    fn take(&mut self, message: &[u8]) {
        let before = self.rows.parts.len();
        self.rows.take(message);
        if let (Some(recent), Some(part)) = (&mut self.recent, self.rows.parts.get(before)) {
            recent.suspect(part, message);
        }
    }

    /// Adds the part of a lane whose interval was about to be counted when programs were detached.
    pub(crate) fn add_returning(&mut self, returning: &Returning) {
        if returning.part.start != 0 {
            self.rows.add_part(&returning.part, returning.key, true);
        }
    }

    /// Settles the keys of which everything has arrived, as [`Sums::settle`] does.
    pub(crate) fn settle(
        &mut self,
        sums: &mut Sums,
        arrived: Arrived<'_>,
        is_lost: impl Fn(u32, u64) -> bool,
    ) {
        let recent = self.recent.iter_mut().flat_map(Recent::rows_mut);
        for rows in recent.chain([&mut self.rows]) {
            rows.keys.settle(sums, arrived, &is_lost);
        }
    }

    /// Returns the IDs of keys that could not settle yet.
    pub(crate) fn open_ids(&self) -> impl Iterator<Item = u64> {
        self.all_rows().flat_map(|rows| rows.keys.open_ids())
    }

    /// Returns all rows, the oldest first.
    pub(crate) fn all_rows(&self) -> impl Iterator<Item = &Rows> {
        let recent = self.recent.iter().flat_map(Recent::rows);
        recent.chain([&self.rows])
    }

    /// Returns whether the lengths of counted intervals include the wait for a CPU.
    pub(crate) fn counts_runnable(&self) -> bool {
        let recent = self.recent.as_ref();
        recent.is_none_or(Recent::counts_runnable)
    }

    /// Moves the rows to those of the recorder.
    fn keep(&mut self) {
        if let Some(recent) = &mut self.recent {
            recent.keep(std::mem::take(&mut self.rows), monotonic_ns());
        }
    }

    /// Keeps only what passed from the recorder's start on, if there is a recorder. `window` is
    /// what was measured, in ns of CLOCK_MONOTONIC. Returns the start.
    pub(crate) fn cut(&mut self, window: Range<u64>) -> Option<u64> {
        self.keep();
        let recent = self.recent.take()?;
        let start_ns = recent.start_ns(window);
        self.rows = recent.into_rows_since(start_ns);
        Some(start_ns)
    }
}

/// Receiver of a timeline, while its programs run.
pub(crate) struct Receiver<'a> {
    ring: RingBuffer<'a>,
    timeline: Rc<RefCell<Timeline>>,
    sink: Option<RowSink>,
    /// Time at which the sink last got rows.
    passed: Instant,
    lost: Variable<'a, u64>,
}

impl<'a> Receiver<'a> {
    pub(crate) fn new(
        object: &'a LoadedObject,
        recorder: Option<&Recorder>,
    ) -> Result<Receiver<'a>> {
        let timeline = Rc::new(RefCell::new(Timeline::new(recorder)));
        let receiver = Rc::clone(&timeline);
        let messages = object.map(bpf::maps::TIMELINE)?;
        let mut builder = RingBufferBuilder::new();
        builder
            .add(&messages, move |message| {
                receiver.borrow_mut().take(message);
                0
            })
            .context("map the ring buffer of the timeline")?;
        Ok(Receiver {
            ring: builder
                .build()
                .context("open the ring buffer of the timeline")?,
            timeline,
            sink: None,
            passed: Instant::now(),
            lost: object.variable(bpf::variables::TIMELINE_LOST)?,
        })
    }

    /// Returns the ring buffer.
    pub(crate) fn ring(&self) -> &RingBuffer<'a> {
        &self.ring
    }

    /// Passes all rows to `sink` from now on, instead of keeping them.
    pub(crate) fn set_sink(&mut self, sink: RowSink) {
        self.sink = Some(sink);
    }

    /// Takes the messages that have arrived.
    pub(crate) fn take(&mut self) -> Result<()> {
        consume(&self.ring)?;
        let kept = self.timeline.borrow().rows.count();
        if kept >= ROWS_KEPT || (kept > 0 && self.passed.elapsed() >= KEPT_FOR) {
            self.pass_on()?;
        }
        Ok(())
    }

    /// Passes the rows to the sink or to the recorder, if there is one.
    fn pass_on(&mut self) -> Result<()> {
        self.passed = Instant::now();
        let mut timeline = self.timeline.borrow_mut();
        timeline.keep();
        if let Some(sink) = &mut self.sink {
            let rows = &mut timeline.rows;
            sink(&rows.parts, &rows.samples).context("write the timeline")?;
            rows.parts.clear();
            rows.samples.clear();
        }
        Ok(())
    }

    /// Calls `body` with the timeline so far.
    pub(crate) fn with_timeline<T>(&self, body: impl FnOnce(&mut Timeline) -> T) -> T {
        body(&mut self.timeline.borrow_mut())
    }

    /// Returns whether a recorder keeps the rows.
    pub(crate) fn records(&self) -> bool {
        self.timeline.borrow().recent.is_some()
    }

    /// Sets the end of the window, in ns of CLOCK_MONOTONIC.
    pub(crate) fn set_stop(&self, stop_ns: u64) {
        if let Some(recent) = &mut self.timeline.borrow_mut().recent {
            recent.set_stop(stop_ns);
        }
    }

    /// Returns the time before which a recorder needs nothing, in ns of CLOCK_MONOTONIC; `None`
    /// without a recorder.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        let timeline = self.timeline.borrow();
        let recent = timeline.recent.as_ref();
        recent.map(|recent| recent.oldest_ns(monotonic_ns()))
    }

    /// Returns all rows, once no program runs any more.
    pub(crate) fn finish(mut self) -> Result<Timeline> {
        self.take()?;
        self.pass_on()?;
        let mut timeline = std::mem::take(&mut *self.timeline.borrow_mut());
        timeline.lost = self.lost.get();
        Ok(timeline)
    }
}
