//! The part of the crate `fxprof-processed-profile` that this format uses.

mod categories;
mod markers;
mod splice;

use std::io::{self, BufWriter, Write};

use fxprof_processed_profile::{
    CategoryHandle, CategoryPairHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerTiming,
    MarkerTypeHandle, Profile, ReferenceTimestamp, SamplingInterval, Timestamp, WeightType,
};

use self::categories::{Categories, add_categories};
use self::markers::{Row, SCHEMAS};
use self::splice::{TAIL, ThreadsWriter};
use super::weights::{Point, UNIT_NS};

pub(super) use self::categories::Category;
pub(super) use self::markers::{Kind, Marker, Value};
pub(super) use fxprof_processed_profile::{
    FrameHandle, ProcessHandle, StackHandle, StringHandle, ThreadHandle,
};

/// A file that is written by and by. All times are in ns since its start.
///
/// The crate holds a whole profile in memory and writes it at once. So this is a profile of some
/// threads at a time, all with the same categories and markers, whose threads are written one after
/// another. Handles are valid until the threads are written.
pub(super) struct File<'a> {
    name: String,
    system: String,
    start_utc_ns: u64,
    writer: BufWriter<&'a mut dyn Write>,
    is_begun: bool,
    profile: Profile,
    categories: Categories,
    schemas: Vec<MarkerTypeHandle>,
}

impl<'a> File<'a> {
    /// Starts a file. `name` and `system` are what viewers show of it. `start_utc_ns` is its start,
    /// in ns since 1970.
    pub(super) fn new(
        name: String,
        system: String,
        start_utc_ns: u64,
        writer: &'a mut dyn Write,
    ) -> File<'a> {
        let nothing = Profile::new("", start(0), SamplingInterval::from_nanos(UNIT_NS));
        let mut file = File {
            name,
            system,
            start_utc_ns,
            writer: BufWriter::new(writer),
            is_begun: false,
            profile: nothing,
            categories: Categories::new(),
            schemas: Vec::new(),
        };
        file.start_profile();
        file
    }

    /// Starts a profile with all categories and markers, in the same order each time.
    fn start_profile(&mut self) {
        let interval = SamplingInterval::from_nanos(UNIT_NS);
        let mut profile = Profile::new(&self.name, start(self.start_utc_ns), interval);
        profile.set_os_name(&self.system);
        profile.set_symbolicated(true);
        self.categories = add_categories(&mut profile);
        let schemas = SCHEMAS.iter();
        let schemas = schemas.map(|schema| profile.register_marker_type(schema.to_runtime()));
        self.schemas = schemas.collect();
        self.profile = profile;
    }

    /// Writes the threads that were added.
    ///
    /// # Errors
    /// Returns the errors of the writer.
    pub(super) fn write_threads(&mut self) -> io::Result<()> {
        if self.is_begun {
            self.writer.write_all(b",\n")?;
        }
        let mut threads = ThreadsWriter::new(&mut self.writer, !self.is_begun);
        self.is_begun = true;
        serde_json::to_writer(&mut threads, &self.profile)?;
        threads.finish()?;
        self.start_profile();
        Ok(())
    }

    /// Writes the end of the file.
    ///
    /// # Errors
    /// Returns the errors of the writer.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.writer.write_all(TAIL)?;
        self.writer.write_all(b"\n")?;
        self.writer.flush()
    }

    /// Adds a process. `end_ns` is `None` if it goes on.
    pub(super) fn process(
        &mut self,
        name: &str,
        pid: u32,
        start_ns: u64,
        end_ns: Option<u64>,
    ) -> ProcessHandle {
        let process = self.profile.add_process(name, pid, at(start_ns));
        if let Some(end_ns) = end_ns {
            self.profile.set_process_end_time(process, at(end_ns));
        }
        process
    }

    /// Adds a thread, whose samples weigh ms. `end_ns` is `None` if it goes on. Viewers show the
    /// main thread by the name of its process.
    pub(super) fn thread(
        &mut self,
        process: ProcessHandle,
        tid: u32,
        is_main: bool,
        start_ns: u64,
        end_ns: Option<u64>,
    ) -> ThreadHandle {
        let profile = &mut self.profile;
        let thread = profile.add_thread(process, tid, at(start_ns), is_main);
        profile.set_thread_show_markers_in_timeline(thread, true);
        profile.set_thread_samples_weight_type(thread, WeightType::TracingMs);
        if let Some(end_ns) = end_ns {
            profile.set_thread_end_time(thread, at(end_ns));
        }
        thread
    }

    pub(super) fn set_thread_name(&mut self, thread: ThreadHandle, name: &str) {
        self.profile.set_thread_name(thread, name);
    }

    /// Lets the weights of a thread's samples be numbers of samples.
    pub(super) fn count_samples(&mut self, thread: ThreadHandle) {
        let weight_type = WeightType::Samples;
        self.profile
            .set_thread_samples_weight_type(thread, weight_type);
    }

    pub(super) fn text(&mut self, text: &str) -> StringHandle {
        self.profile.intern_string(text)
    }

    pub(super) fn frame(
        &mut self,
        thread: ThreadHandle,
        name: StringHandle,
        category: Category,
    ) -> FrameHandle {
        let frame = FrameInfo {
            frame: Frame::Label(name),
            category_pair: self.category(category).1,
            flags: FrameFlags::empty(),
        };
        self.profile.intern_frame(thread, frame)
    }

    pub(super) fn stack(
        &mut self,
        thread: ThreadHandle,
        callers: Option<StackHandle>,
        leaf: FrameHandle,
    ) -> StackHandle {
        self.profile.intern_stack(thread, callers, leaf)
    }

    pub(super) fn sample(
        &mut self,
        thread: ThreadHandle,
        stack: Option<StackHandle>,
        point: Point,
    ) {
        let cpu = CpuDelta::from_micros(point.cpu_us);
        let time = at(point.at_ns);
        self.profile
            .add_sample(thread, time, stack, cpu, point.weight);
    }

    pub(super) fn marker(&mut self, thread: ThreadHandle, marker: &Marker<'_>) {
        let timing = match marker.end_ns {
            Some(end_ns) => MarkerTiming::Interval(at(marker.start_ns), at(end_ns)),
            None => MarkerTiming::Instant(at(marker.start_ns)),
        };
        let row = Row {
            schema: self.schemas[marker.kind as usize],
            name: self.text(marker.name),
            category: self.category(marker.category).0,
            values: marker.values,
        };
        let handle = self.profile.add_marker(thread, timing, row);
        self.profile.set_marker_stack(thread, handle, marker.stack);
    }

    fn category(&self, category: Category) -> (CategoryHandle, CategoryPairHandle) {
        // The map has all categories.
        let other = (CategoryHandle::OTHER, CategoryHandle::OTHER.into());
        self.categories.get(&category).copied().unwrap_or(other)
    }
}

/// Returns an instant in UTC. Viewers take it as f64 of ms.
fn start(utc_ns: u64) -> ReferenceTimestamp {
    ReferenceTimestamp::from_millis_since_unix_epoch(utc_ns as f64 / 1e6)
}

fn at(ns: u64) -> Timestamp {
    Timestamp::from_nanos_since_reference(ns)
}
