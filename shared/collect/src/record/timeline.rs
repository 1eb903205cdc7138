//! Timeline of a measurement: parts of lanes, samples and names of threads, with their times.
//! Programs send them as `bpf/include/timeline.h` says.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bpf::types::{LaneEvent, NameEvent, Returning, SampleEvent, StackKey, TimelineKind};
use capture::{LanePart, LaneSample};
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use loader::iterators::copy;
use loader::{Context, LoadedObject, OpenObject, Result, Variable};
use profile::{Shares, ThreadId};

use crate::record::collector::consume;
use crate::record::counts::Arrived;
use crate::record::sums::{Key, Sums, without_lost};

/// Sets whether programs send a timeline, and the minimum length in ns of intervals with a row
/// of their own.
pub(crate) fn configure(object: &mut OpenObject, least_ns: Option<u64>) -> Result<()> {
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

/// Rows that are kept before they go to the sink.
const ROWS_KEPT: usize = 4096;
/// Maximum time that rows are kept before they go to the sink.
const KEPT_FOR: Duration = Duration::from_secs(1);

/// Rows of a timeline.
#[derive(Default)]
pub(crate) struct Timeline {
    keys: Keys,
    pub(crate) parts: Vec<LanePart>,
    pub(crate) samples: Vec<LaneSample>,
    pub(crate) names: Vec<NameEvent>,
    /// Number of messages that found no capacity.
    pub(crate) lost: u64,
}

/// Keys of rows, by their numbers.
#[derive(Default)]
struct Keys {
    numbers: HashMap<StackKey, u32>,
    /// Settled keys; `None` if something of the key has not arrived.
    settled: Vec<Option<Key>>,
    open: Vec<(u32, StackKey)>,
}

impl Keys {
    fn number(&mut self, key: StackKey) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            let number = self.settled.len() as u32;
            self.settled.push(None);
            self.open.push((number, key));
            number
        })
    }
}

impl Timeline {
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

    /// Adds the part of a lane whose interval was about to be counted when programs were detached.
    pub(crate) fn add_returning(&mut self, returning: &Returning) {
        if returning.part.start != 0 {
            self.add_part(&returning.part, returning.key, true);
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

    fn row_count(&self) -> usize {
        self.parts.len() + self.samples.len()
    }

    /// Settles the keys of which everything has arrived, as [`Sums::settle`] does.
    pub(crate) fn settle(
        &mut self,
        sums: &mut Sums,
        arrived: Arrived<'_>,
        is_lost: impl Fn(u32, u64) -> bool,
    ) {
        let Keys { settled, open, .. } = &mut self.keys;
        open.retain(|&(number, key)| {
            let key = sums.settled_key(without_lost(key, arrived, &is_lost), arrived);
            settled[number as usize] = key;
            key.is_none()
        });
    }

    /// Forgets which IDs the settled keys had. The IDs may be used again.
    pub(crate) fn forget_ids(&mut self) {
        let Keys { numbers, open, .. } = &mut self.keys;
        numbers.clear();
        numbers.extend(open.iter().map(|&(number, key)| (key, number)));
    }

    /// Returns the IDs of keys that could not settle yet.
    pub(crate) fn open_ids(&self) -> impl Iterator<Item = u64> {
        let open = self.keys.open.iter();
        open.flat_map(|(_, key)| [key.user, key.kernel, key.waker])
    }

    /// Returns the number of keys.
    pub(crate) fn key_count(&self) -> u32 {
        self.keys.settled.len() as u32
    }

    /// Returns the settled key with a number.
    pub(crate) fn key(&self, number: u32) -> Option<Key> {
        self.keys.settled.get(number as usize).copied().flatten()
    }

    /// Returns the settled keys.
    pub(crate) fn settled_keys(&self) -> impl Iterator<Item = Key> {
        self.keys.settled.iter().copied().flatten()
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
    pub(crate) fn new(object: &'a LoadedObject) -> Result<Receiver<'a>> {
        let timeline = Rc::new(RefCell::new(Timeline::default()));
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
        let kept = self.timeline.borrow().row_count();
        if kept >= ROWS_KEPT || (kept > 0 && self.passed.elapsed() >= KEPT_FOR) {
            self.pass_on()?;
        }
        Ok(())
    }

    /// Passes the rows to the sink, if there is one.
    fn pass_on(&mut self) -> Result<()> {
        if let Some(sink) = &mut self.sink {
            let mut timeline = self.timeline.borrow_mut();
            sink(&timeline.parts, &timeline.samples).context("write the timeline")?;
            timeline.parts.clear();
            timeline.samples.clear();
            self.passed = Instant::now();
        }
        Ok(())
    }

    /// Calls `body` with the rows so far.
    pub(crate) fn with_rows<T>(&self, body: impl FnOnce(&mut Timeline) -> T) -> T {
        body(&mut self.timeline.borrow_mut())
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
