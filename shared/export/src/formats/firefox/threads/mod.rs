//! Fills a file with the threads of a profile: their samples and markers.

mod known;
mod markers;

use std::borrow::Cow;
use std::io::{self, Write};
use std::iter::Peekable;

use profile::{Interval, Profile, Sample, State, ThreadChange, ThreadId, TimedSample, marker};

use self::known::Lane;
use super::file::{Category, File, ProcessHandle, StackHandle, StringHandle, ThreadHandle};
use super::weights::{Point, UNIT_NS};
use crate::lanes::{LaneNames, Lanes, Origin, lack};
use crate::measure::{Measure, implied_state, state_name};
use crate::text::title::title;

/// In place of a value that is not known.
const UNKNOWN: &str = "unknown";

/// Rows after which the threads so far are written: samples and markers.
const MAX_ROWS: usize = 10_000;

/// Writes a file with the timeline of a profile, or with its sums if it has no timeline.
///
/// # Errors
/// Returns the errors of `writer`.
pub(super) fn write(profile: &Profile, writer: &mut dyn Write) -> io::Result<()> {
    let mut threads = Threads::new(profile, writer);
    if profile.times.is_empty() {
        threads.add_sums()?;
    } else {
        threads.add_lanes()?;
    }
    threads.finish()
}

/// The threads of a profile, of which the last are in memory.
struct Threads<'a> {
    profile: &'a Profile,
    origin: Origin,
    names: LaneNames<'a>,
    measure: Measure,
    file: File<'a>,
    /// Losses of the timeline in words, until a thread has the marker for it.
    lack: Option<Cow<'static, str>>,
    /// Rows in memory.
    rows: usize,
    /// Names of the profile's frames in memory, by index.
    frames: Vec<Option<StringHandle>>,
    /// The process of the last thread.
    process: Option<(u32, ProcessHandle)>,
}

/// Life of a thread or a process.
#[derive(Clone, Copy)]
struct Life {
    start_ns: u64,
    /// End; `None` if it goes on.
    end_ns: Option<u64>,
}

impl Life {
    /// The whole window.
    const WHOLE: Life = Life {
        start_ns: 0,
        end_ns: None,
    };

    /// Returns the life of two together.
    fn join(self, other: Life) -> Life {
        let ends = self.end_ns.zip(other.end_ns);
        Life {
            start_ns: self.start_ns.min(other.start_ns),
            end_ns: ends.map(|(one, other)| one.max(other)),
        }
    }
}

impl<'a> Threads<'a> {
    fn new(profile: &'a Profile, writer: &'a mut dyn Write) -> Threads<'a> {
        let meta = &profile.meta;
        let origin = Origin::new(profile);
        let lack = lack(profile);
        let name = match &lack {
            Some(lack) => format!("{} ({lack})", title(profile)),
            None => title(profile),
        };
        let system = match (&*meta.kernel, &*meta.host) {
            ("", _) => "Linux".to_owned(),
            (kernel, host) => format!("Linux {kernel} on {host}"),
        };
        Threads {
            profile,
            origin,
            names: LaneNames::new(profile),
            measure: Measure::new(profile),
            file: File::new(name, system, origin.utc_ns, writer),
            lack,
            rows: 0,
            frames: vec![None; profile.frames.len()],
            process: None,
        }
    }

    /// Adds the threads of the timeline.
    fn add_lanes(&mut self) -> io::Result<()> {
        let lanes = Lanes::new(self.profile);
        for threads in lanes.threads().chunk_by(|one, other| one.pid == other.pid) {
            let lives = threads.iter().map(|&thread| self.life(&lanes, thread));
            let process_life = lives.reduce(Life::join).unwrap_or(Life::WHOLE);
            for &thread in threads {
                let life = self.life(&lanes, thread);
                let handle = self.start_thread(thread, life, process_life)?;
                self.fill(&lanes, thread, handle, life.start_ns);
            }
        }
        Ok(())
    }

    /// Returns the life of a thread, as far as its rows show it.
    fn life(&self, lanes: &Lanes<'_>, thread: ThreadId) -> Life {
        let interval = lanes.intervals(thread).next();
        let sample = lanes.timed_samples(thread).next();
        let event = lanes.events(thread).next();
        let request = lanes.requests(thread).next();
        let firsts = [
            interval.map(|row| row.start_ns),
            sample.map(|row| row.time_ns),
            event.map(|row| row.time_ns),
            request.map(|row| row.start_ns),
        ];
        let ends = lanes.events(thread).filter_map(|row| match row.change {
            ThreadChange::Ended => Some(Some(row.time_ns)),
            ThreadChange::Started => Some(None),
            ThreadChange::Executed(_) | ThreadChange::Renamed(_) => None,
        });
        let start_ns = firsts.into_iter().flatten().min().unwrap_or(0);
        let end_ns = ends.last().flatten();
        Life {
            start_ns: self.origin.since(start_ns),
            end_ns: end_ns.map(|end_ns| self.origin.since(end_ns)),
        }
    }

    /// Adds a thread without samples, after it has written the threads before if they are many.
    /// Threads of one process come one after another.
    fn start_thread(
        &mut self,
        thread: ThreadId,
        life: Life,
        process_life: Life,
    ) -> io::Result<ThreadHandle> {
        if self.rows > MAX_ROWS {
            self.file.write_threads()?;
            self.rows = 0;
            self.frames.fill(None);
            self.process = None;
        }
        let ThreadId { pid, tid } = thread;
        let known = self.process.filter(|process| process.0 == pid);
        let (_, process) = known.unwrap_or_else(|| {
            let unnamed = || match pid {
                0 => "all threads".to_owned(),
                pid => format!("process {pid}"),
            };
            let name = self.names.process(pid).map_or_else(unnamed, str::to_owned);
            let Life { start_ns, end_ns } = process_life;
            (pid, self.file.process(&name, pid, start_ns, end_ns))
        });
        self.process = Some((pid, process));
        let Life { start_ns, end_ns } = life;
        let handle = self.file.thread(process, tid, tid == pid, start_ns, end_ns);
        if let Some(name) = self.names.thread(thread) {
            self.file.set_thread_name(handle, name);
        }
        if let Some(lack) = self.lack.take() {
            self.add_remark(handle, &lack);
        }
        Ok(handle)
    }

    /// Writes the last threads and the end of the file.
    fn finish(mut self) -> io::Result<()> {
        // Viewers refuse a file without threads.
        if self.process.is_none() {
            self.start_thread(ThreadId::default(), Life::WHOLE, Life::WHOLE)?;
        }
        self.file.write_threads()?;
        self.file.finish()
    }

    /// Adds the samples and markers of a thread of the timeline.
    fn fill(&mut self, lanes: &Lanes<'_>, thread: ThreadId, handle: ThreadHandle, start_ns: u64) {
        let mut lane = Lane::new(handle);
        // Viewers take the CPU time of a sample for the time since the one before, so the first one
        // has none.
        self.file.sample(handle, None, Point::start(start_ns));
        let mut timed = lanes.timed_samples(thread).peekable();
        let mut end_ns = start_ns;
        for interval in lanes.intervals(thread) {
            self.add_samples(&mut lane, interval, &mut timed);
            self.add_interval(&mut lane, interval);
            end_ns = end_ns.max(self.origin.since(interval.end_ns()));
        }
        let has_intervals = lanes.has_intervals(thread);
        if !has_intervals && matches!(self.measure, Measure::Events(..)) {
            self.file.count_samples(handle);
        }
        for row in timed {
            match self.measure {
                _ if has_intervals => {}
                Measure::Time(each_ns) => lane.account.run(each_ns),
                Measure::Events(..) => lane.account.count(),
            }
            self.add_timed(&mut lane, row);
        }
        let point = lane.account.take(end_ns);
        if point != Point::start(end_ns) {
            let stack = self.label(handle, None, marker::NO_SAMPLE, Category::Running);
            self.file.sample(handle, Some(stack), point);
        }
        for event in lanes.events(thread) {
            self.add_event(handle, event);
        }
        for span in lanes.requests(thread) {
            self.add_request(handle, span);
        }
        let rows = lanes.intervals(thread).count() + lanes.timed_samples(thread).count();
        self.rows += rows + lane.known.len();
    }

    /// Adds samples for the time of an interval: the CPU samples in it, and others for the rest.
    fn add_samples<'b>(
        &mut self,
        lane: &mut Lane,
        interval: &Interval,
        timed: &mut Peekable<impl Iterator<Item = &'b TimedSample>>,
    ) {
        for (state, mut start_ns, until_ns) in parts(interval) {
            if state == State::Running && timed.peek().is_some() {
                while let Some(row) = timed.next_if(|row| row.time_ns < until_ns) {
                    let time_ns = row.time_ns.max(start_ns);
                    lane.account.run(time_ns - start_ns);
                    start_ns = time_ns;
                    self.add_timed(lane, row);
                }
                if timed.peek().is_some() {
                    lane.account.run(until_ns - start_ns);
                    continue;
                }
            }
            // Running time after the last CPU sample has no stack.
            let points = lane.account.pass(state, start_ns, until_ns - start_ns);
            for point in points {
                let stack = self.stack_of_interval(lane, interval, state);
                self.add_sample(lane.handle, stack, point);
            }
        }
    }

    /// Adds a sample at a point that is in ns of CLOCK_MONOTONIC.
    fn add_sample(&mut self, handle: ThreadHandle, stack: Option<StackHandle>, point: Point) {
        let at_ns = self.origin.since(point.at_ns);
        self.file.sample(handle, stack, Point { at_ns, ..point });
    }

    /// Adds a CPU sample.
    fn add_timed(&mut self, lane: &mut Lane, row: &TimedSample) {
        let point = lane.account.take(row.time_ns);
        let known = self.known(lane, row.sample, State::Running);
        let stack = known.and_then(|known| known.labelled);
        self.add_sample(lane.handle, stack, point);
    }

    /// Returns the stack of an interval's time in a state.
    fn stack_of_interval(
        &mut self,
        lane: &mut Lane,
        interval: &Interval,
        state: State,
    ) -> Option<StackHandle> {
        let known = interval.sample.and_then(|id| self.known(lane, id, state));
        if let Some(known) = known {
            return known.labelled;
        }
        let label = match state {
            State::Running => marker::NO_SAMPLE.to_owned(),
            other if interval.shares.is_mixed() => {
                format!("[{}: short intervals]", state_name(other))
            }
            other => format!("[{}]", state_name(other)),
        };
        Some(self.label(lane.handle, None, &label, category(state)))
    }

    /// Adds threads that have the sums of the profile, one stack after another. Threads that are
    /// not told apart are one.
    fn add_sums(&mut self) -> io::Result<()> {
        let profile = self.profile;
        let thread = |sample: &Sample| sample.thread.unwrap_or_default();
        let mut rows: Vec<(&Sample, u64)> = Vec::with_capacity(profile.samples.len());
        let weights = profile.samples.iter();
        rows.extend(weights.map(|(sample, weight)| (sample, weight.value)));
        rows.sort_by_key(|(sample, _)| thread(sample));
        for of_thread in rows.chunk_by(|one, other| thread(one.0) == thread(other.0)) {
            let id = thread(of_thread[0].0);
            let handle = self.start_thread(id, Life::WHOLE, Life::WHOLE)?;
            self.add_thread_sums(handle, of_thread);
            self.rows += of_thread.len();
        }
        Ok(())
    }

    fn add_thread_sums(&mut self, handle: ThreadHandle, rows: &[(&Sample, u64)]) {
        let mut lane = Lane::new(handle);
        let mut now_ns: u64 = 0;
        for (sample, value) in rows {
            let state = sample.state.or(implied_state(self.profile));
            let stack = self.describe(&mut lane, sample, state).labelled;
            match self.measure {
                Measure::Time(_) => {
                    let length_ns = self.measure.convert(*value);
                    let passed = state.unwrap_or(State::Blocked);
                    for point in lane.account.pass(passed, now_ns, length_ns) {
                        self.file.sample(handle, stack, point);
                    }
                    now_ns = now_ns.saturating_add(length_ns);
                }
                Measure::Events(..) => {
                    let weight = i32::try_from(*value).unwrap_or(i32::MAX);
                    let point = Point {
                        weight,
                        ..Point::start(now_ns)
                    };
                    self.file.sample(handle, stack, point);
                    now_ns = now_ns.saturating_add(UNIT_NS);
                }
            }
        }
        if matches!(self.measure, Measure::Events(..)) {
            self.file.count_samples(handle);
        }
    }
}

/// Returns the category of time in a state of which no more is known.
fn category(state: State) -> Category {
    match state {
        State::Running => Category::Running,
        State::Runnable => Category::Runnable,
        State::Blocked => Category::Blocked(None),
    }
}

/// Returns the start and the end of an interval's time in each state, as if one followed the other.
fn parts(interval: &Interval) -> impl Iterator<Item = (State, u64, u64)> + use<> {
    let shares = interval.shares;
    let mut start_ns = interval.start_ns;
    let states = [State::Running, State::Runnable, State::Blocked];
    let states = states
        .into_iter()
        .filter(move |state| shares.of(*state) > 0);
    states.map(move |state| {
        let end_ns = start_ns.saturating_add(shares.of(state));
        (state, std::mem::replace(&mut start_ns, end_ns), end_ns)
    })
}
