//! Recorder of the last part of a window: rows in bounded memory, and waits that set off a trigger.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use bpf::types::{LaneEvent, NameEvent, StackKey};
use capture::{LanePart, LaneSample};
use loader::iterators::copy;
use profile::Shares;

use super::Rows;
use super::keys::Keys;
use crate::record::sums::Key;

/// Choice of what a recorder keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorder {
    /// Length of the part that is kept, in ns.
    pub length_ns: u64,
    /// Maximum memory of the rows, in bytes.
    pub max_bytes: u64,
    /// Waits that end the recording.
    pub triggers: Vec<Trigger>,
    /// True if the length of a counted interval includes the wait for a CPU at its end.
    pub counts_runnable: bool,
}

/// A wait that ends the recording: a thread stays off the CPU for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Kind of the wait.
    pub delay: Delay,
    /// Minimum length of the wait, in ns.
    pub least_ns: u64,
}

/// Kind of the waits that set off a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// The thread is blocked while it has work.
    Blocked,
    /// The thread waits for a CPU.
    Runnable,
}

impl Delay {
    /// Returns the name, such as `blocked`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Delay::Blocked => "blocked",
            Delay::Runnable => "runnable",
        }
    }
}

impl Trigger {
    /// Returns the length of the wait of a part, in ns.
    pub(crate) fn length_ns(&self, part: &LanePart) -> u64 {
        match self.delay {
            Delay::Blocked => part.blocked_ns,
            Delay::Runnable => part.runnable_ns,
        }
    }

    fn may_fire(&self, part: &LanePart) -> bool {
        self.length_ns(part) >= self.least_ns
    }
}

/// A wait that is as long as a trigger says. Its reason decides whether the trigger fires.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspect {
    pub(crate) trigger: Trigger,
    pub(crate) part: LanePart,
    pub(crate) key: StackKey,
}

/// Maximum number of waits whose reasons are being found.
const MAX_SUSPECTS: usize = 1024;

/// Rows of the last part of a window.
pub(crate) struct Recent {
    recorder: Recorder,
    chunks: VecDeque<Chunk>,
    /// Memory of the chunks, in bytes.
    bytes: u64,
    /// End of the window, in ns of CLOCK_MONOTONIC; `u64::MAX` until it is known.
    stop_ns: u64,
    /// End of the rows that were dropped, in ns of CLOCK_MONOTONIC; 0 if there are none.
    dropped_until_ns: u64,
    suspects: VecDeque<Suspect>,
}

/// Rows that arrived one after the other.
struct Chunk {
    rows: Rows,
    /// Latest end of a row, in ns of CLOCK_MONOTONIC.
    end_ns: u64,
    bytes: u64,
}

impl Recent {
    pub(super) fn new(recorder: &Recorder) -> Recent {
        Recent {
            recorder: recorder.clone(),
            chunks: VecDeque::new(),
            bytes: 0,
            stop_ns: u64::MAX,
            dropped_until_ns: 0,
            suspects: VecDeque::new(),
        }
    }

    /// Adds a wait to the suspects, if it is as long as a trigger says. `message` is the event of
    /// the part.
    pub(super) fn suspect(&mut self, part: &LanePart, message: &[u8]) {
        let triggers = self.recorder.triggers.iter();
        let mut triggers = triggers.filter(|trigger| trigger.may_fire(part)).peekable();
        if triggers.peek().is_none() {
            return;
        }
        let event = copy::<LaneEvent>(message);
        let Some(LaneEvent { key, .. }) = event.filter(|event| event.is_counted != 0) else {
            return;
        };
        for &trigger in triggers {
            if self.suspects.len() < MAX_SUSPECTS {
                let part = *part;
                self.suspects.push_back(Suspect { trigger, part, key });
            }
        }
    }

    /// Takes the waits that are as long as a trigger says.
    pub(crate) fn take_suspects(&mut self) -> VecDeque<Suspect> {
        std::mem::take(&mut self.suspects)
    }

    /// Returns a wait, whose stacks have not arrived, to the suspects.
    pub(crate) fn return_suspect(&mut self, suspect: Suspect) {
        self.suspects.push_back(suspect);
    }

    pub(super) fn counts_runnable(&self) -> bool {
        self.recorder.counts_runnable
    }

    /// Sets the end of the window, in ns of CLOCK_MONOTONIC.
    pub(super) fn set_stop(&mut self, stop_ns: u64) {
        self.stop_ns = stop_ns;
    }

    /// Returns the time before which nothing is needed at `now`, in ns of CLOCK_MONOTONIC. The rows
    /// of the last moment arrive after the window's end.
    pub(crate) fn oldest_ns(&self, now: u64) -> u64 {
        now.min(self.stop_ns)
            .saturating_sub(self.recorder.length_ns)
    }

    /// Adds the latest rows, and drops rows that are too old at `now` or exceed the memory.
    pub(super) fn keep(&mut self, mut rows: Rows, now: u64) {
        if rows.count() + rows.names.len() == 0 {
            return;
        }
        rows.seal();
        let (end_ns, bytes) = (rows.end_ns(), rows.bytes());
        self.bytes += bytes;
        self.chunks.push_back(Chunk {
            rows,
            end_ns,
            bytes,
        });
        let oldest_ns = self.oldest_ns(now);
        while let Some(first) = self.chunks.front() {
            let is_old = first.end_ns < oldest_ns;
            let is_excess = self.bytes > self.recorder.max_bytes;
            if !is_old && !is_excess {
                break;
            }
            self.dropped_until_ns = self.dropped_until_ns.max(first.end_ns);
            self.bytes -= first.bytes;
            self.chunks.pop_front();
        }
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Rows> {
        self.chunks.iter().map(|chunk| &chunk.rows)
    }

    pub(super) fn rows_mut(&mut self) -> impl Iterator<Item = &mut Rows> {
        self.chunks.iter_mut().map(|chunk| &mut chunk.rows)
    }

    /// Returns the time from which on every row is here, in ns of CLOCK_MONOTONIC. `window` is what
    /// was measured.
    pub(super) fn start_ns(&self, window: Range<u64>) -> u64 {
        let asked = window.end.saturating_sub(self.recorder.length_ns);
        let reached = asked.max(self.dropped_until_ns);
        reached.max(window.start).min(window.end)
    }

    /// Returns what the rows say of the time from `start_ns` on. All keys must have settled.
    pub(super) fn into_rows_since(mut self, start_ns: u64) -> Rows {
        let mut joined = Joined::default();
        while let Some(Chunk { rows, .. }) = self.chunks.pop_front() {
            joined.add(rows, start_ns);
        }
        joined.finish()
    }
}

impl Rows {
    /// Frees the memory that only growing rows need.
    fn seal(&mut self) {
        self.keys.seal();
        self.parts.shrink_to_fit();
        self.samples.shrink_to_fit();
        self.names.shrink_to_fit();
    }

    /// Returns the latest end of a row, in ns of CLOCK_MONOTONIC.
    fn end_ns(&self) -> u64 {
        let parts = self.parts.iter().map(end_of);
        let samples = self.samples.iter().map(|sample| sample.time_ns);
        let names = self.names.iter().map(|event| event.time);
        parts.chain(samples).chain(names).max().unwrap_or(0)
    }

    /// Returns the memory of the rows, in bytes.
    fn bytes(&self) -> u64 {
        let parts = self.parts.len() * size_of::<LanePart>();
        let samples = self.samples.len() * size_of::<LaneSample>();
        let names = self.names.len() * size_of::<NameEvent>();
        let keys = self.keys.count() as usize * size_of::<Option<Key>>();
        (parts + samples + names + keys) as u64
    }
}

/// Rows of several chunks with common keys.
#[derive(Default)]
struct Joined {
    numbers: HashMap<Key, u32>,
    keys: Vec<Option<Key>>,
    rows: Rows,
}

impl Joined {
    fn add(&mut self, rows: Rows, start_ns: u64) {
        let Joined {
            numbers,
            keys,
            rows: joined,
        } = self;
        let mut number = |old: u32| {
            let key = rows.keys.get(old)?;
            Some(*numbers.entry(key).or_insert_with(|| {
                keys.push(Some(key));
                keys.len() as u32 - 1
            }))
        };
        let parts = rows.parts.iter();
        joined
            .parts
            .extend(parts.filter_map(|part| cut(part, start_ns)).map(|part| {
                let key = part.key.and_then(&mut number);
                LanePart { key, ..part }
            }));
        let samples = rows.samples.iter();
        let samples = samples.filter(|sample| sample.time_ns >= start_ns);
        joined.samples.extend(samples.filter_map(|sample| {
            let key = number(sample.key)?;
            Some(LaneSample { key, ..*sample })
        }));
        let names = rows.names.iter();
        let names = names.filter(|event| event.time >= start_ns);
        joined.names.extend(names.copied());
    }

    fn finish(self) -> Rows {
        Rows {
            keys: Keys::from_settled(self.keys),
            ..self.rows
        }
    }
}

/// Returns the end of a part, in ns of CLOCK_MONOTONIC.
fn end_of(part: &LanePart) -> u64 {
    let off_ns = part.blocked_ns.saturating_add(part.runnable_ns);
    let length_ns = part.stretch.total_ns().saturating_add(off_ns);
    part.start_ns.saturating_add(length_ns)
}

/// Returns what a part says of the time from `start_ns` on. A stretch of several states that begins
/// before is dropped, because nothing tells in which order its states were.
fn cut(part: &LanePart, start_ns: u64) -> Option<LanePart> {
    let end_ns = end_of(part);
    if end_ns <= start_ns {
        return None;
    }
    if part.start_ns >= start_ns {
        return Some(*part);
    }
    let runnable_ns = part.runnable_ns.min(end_ns - start_ns);
    let blocked_end_ns = end_ns - part.runnable_ns;
    let blocked_ns = part.blocked_ns.min(blocked_end_ns.saturating_sub(start_ns));
    let stretch_end_ns = blocked_end_ns - part.blocked_ns;
    let left_ns = stretch_end_ns.saturating_sub(start_ns);
    let (start_ns, stretch) = if part.stretch.is_mixed() {
        (start_ns.max(stretch_end_ns), Shares::default())
    } else {
        (start_ns, Shares::all(part.stretch.largest(), left_ns))
    };
    let is_empty = stretch.total_ns() + blocked_ns + runnable_ns == 0;
    (!is_empty).then_some(LanePart {
        start_ns,
        stretch,
        blocked_ns,
        runnable_ns,
        ..*part
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start_ns: u64, stretch: [u64; 3], blocked_ns: u64, runnable_ns: u64) -> LanePart {
        let [running_ns, runnable, blocked] = stretch;
        LanePart {
            thread: profile::ThreadId { pid: 1, tid: 2 },
            start_ns,
            stretch: Shares {
                running_ns,
                runnable_ns: runnable,
                blocked_ns: blocked,
            },
            blocked_ns,
            runnable_ns,
            key: None,
        }
    }

    #[test]
    fn a_part_is_cut_where_the_recording_starts() {
        let whole = part(100, [50, 0, 0], 30, 20);
        assert_eq!(cut(&whole, 100), Some(whole));
        assert_eq!(cut(&whole, 120), Some(part(120, [30, 0, 0], 30, 20)));
        assert_eq!(cut(&whole, 160), Some(part(160, [0, 0, 0], 20, 20)));
        assert_eq!(cut(&whole, 185), Some(part(185, [0, 0, 0], 0, 15)));
        assert_eq!(cut(&whole, 200), None);
        // Nothing tells when the thread ran in a stretch of several states.
        let mixed = part(100, [40, 0, 10], 30, 0);
        assert_eq!(cut(&mixed, 120), Some(part(150, [0, 0, 0], 30, 0)));
        assert_eq!(cut(&part(100, [40, 0, 10], 0, 0), 120), None);
    }

    #[test]
    fn memory_and_age_bound_what_is_kept() {
        let row = size_of::<LanePart>() as u64;
        let recorder = Recorder {
            length_ns: 1000,
            max_bytes: 3 * row,
            triggers: Vec::new(),
            counts_runnable: true,
        };
        let mut recent = Recent::new(&recorder);
        for start_ns in (0..1000).step_by(100) {
            let parts = vec![part(start_ns, [100, 0, 0], 0, 0)];
            let rows = Rows {
                parts,
                ..Rows::default()
            };
            recent.keep(rows, start_ns + 100);
            assert!(recent.bytes <= recorder.max_bytes);
        }
        assert_eq!(recent.start_ns(0..1000), 700);
        let rows = recent.into_rows_since(750);
        let starts: Vec<u64> = rows.parts.iter().map(|part| part.start_ns).collect();
        assert_eq!(starts, [750, 800, 900]);

        let mut recent = Recent::new(&Recorder {
            length_ns: 150,
            max_bytes: u64::MAX,
            ..recorder
        });
        for start_ns in [0, 100, 200] {
            let parts = vec![part(start_ns, [100, 0, 0], 0, 0)];
            let rows = Rows {
                parts,
                ..Rows::default()
            };
            recent.keep(rows, start_ns + 100);
        }
        assert_eq!(recent.start_ns(0..300), 150);
        assert_eq!(recent.chunks.len(), 2);
        // The last rows arrive some time after the window's end.
        recent.set_stop(300);
        let rows = Rows {
            parts: vec![part(300, [0, 0, 0], 0, 0)],
            ..Rows::default()
        };
        recent.keep(rows, 400);
        assert_eq!(recent.start_ns(0..300), 150);
        assert_eq!(recent.chunks.len(), 3);
    }
}
