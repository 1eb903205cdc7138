//! pprof's profiles, for `go tool pprof` and other programs that read them.
//!
//! Samples have one value for each state, one for all states, and labels: the thread, the state,
//! the waker. Stacks are the same as in flame graphs, with wakers on top.

mod columns;
mod messages;

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use profile::{Frame, FrameKind, Id, Module, Name, Profile, Sample, Table, Unit, Weight};
use prost::Message;

use self::columns::{Column, columns};
use crate::format::{Format, Needs};
use crate::measure::{Measure, state_name};
use crate::text::drawn::{Drawn, drawn};
use crate::text::frames::{thread_field, thread_name, wakers};
use crate::text::options::{Ids, Options, Written};

/// The pprof format.
pub struct Pprof;

impl Format for Pprof {
    fn name(&self) -> &'static str {
        "pprof"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".pb.gz", ".pprof"]
    }

    fn readers(&self) -> &'static str {
        "`go tool pprof`, Parca, Pyroscope; threads and states are labels"
    }

    fn needs(&self) -> Needs {
        Needs {
            addresses: true,
            reasons: true,
            threads: true,
            ..Needs::NAMES
        }
    }

    fn is_binary(&self) -> bool {
        true
    }

    fn write(
        &self,
        profile: &Profile,
        _options: &Options,
        writer: &mut dyn Write,
    ) -> io::Result<Written> {
        let mut packed = GzEncoder::new(writer, Compression::fast());
        write_messages(profile, &mut packed)?;
        packed.finish()?.flush()?;
        Ok(Written::default())
    }
}

/// Writes one message per field or row. A reader merges the messages.
fn write_messages(profile: &Profile, writer: &mut dyn Write) -> io::Result<()> {
    let mut put = |message: messages::Profile| writer.write_all(&message.encode_to_vec());
    let empty = messages::Profile::default;
    let measure = Measure::new(profile);
    let columns = columns(profile, &measure);
    let mut rows = Rows::new(profile);
    put(rows.head(&columns, &measure))?;
    for (sample, weight) in profile.samples.iter() {
        let sample = rows.sample(sample, weight, &columns, &measure);
        put(messages::Profile {
            sample: vec![sample],
            ..empty()
        })?;
    }
    for (id, function) in (1..).zip(rows.functions.iter()) {
        put(messages::Profile {
            function: vec![messages::Function { id, ..*function }],
            ..empty()
        })?;
    }
    for (id, location) in (1..).zip(rows.locations.iter()) {
        let location = messages::Location {
            id,
            ..location.clone()
        };
        put(messages::Profile {
            location: vec![location],
            ..empty()
        })?;
    }
    put(messages::Profile {
        mapping: std::mem::take(&mut rows.mappings),
        ..empty()
    })?;
    for text in rows.strings.iter() {
        put(messages::Profile {
            string_table: vec![text.to_string()],
            ..empty()
        })?;
    }
    Ok(())
}

/// Tables that samples refer to. IDs count from 1.
struct Rows<'a> {
    profile: &'a Profile,
    strings: Table<Box<str>>,
    functions: Table<messages::Function>,
    locations: Table<messages::Location>,
    mappings: Vec<messages::Mapping>,
    /// IDs of mappings, by the index of the module.
    modules: Vec<u64>,
    /// IDs of locations, by frame, for frames without inlined functions.
    frames: HashMap<Id<Frame>, u64>,
}

impl<'a> Rows<'a> {
    fn new(profile: &'a Profile) -> Rows<'a> {
        let mut strings = Table::default();
        strings.text("");
        let mut rows = Rows {
            profile,
            strings,
            functions: Table::default(),
            locations: Table::default(),
            mappings: Vec::new(),
            modules: Vec::new(),
            frames: HashMap::new(),
        };
        rows.add_mappings();
        rows
    }

    fn text(&mut self, text: &str) -> i64 {
        self.strings.text(text).index() as i64
    }

    /// Adds a mapping per module. The program comes first, as readers expect.
    fn add_mappings(&mut self) {
        let profile = self.profile;
        let programs = profile.processes.iter();
        let programs: Vec<&str> = programs.map(|process| &*process.executable).collect();
        let path = |module: &Module| &*profile.names[module.path];
        let mut order: Vec<(usize, &Module)> = profile.modules.iter().enumerate().collect();
        order.sort_by_key(|(_, module)| !programs.contains(&path(module)));
        self.modules = vec![0; order.len()];
        for (id, (place, module)) in (1..).zip(order) {
            self.modules[place] = id;
            let path = path(module);
            let path = path.strip_suffix(" (deleted)").unwrap_or(path);
            let build_id = module.build_id.map_or("", |digits| &profile.names[digits]);
            let (filename, build_id) = (self.text(path), self.text(build_id));
            self.mappings.push(messages::Mapping {
                id,
                filename,
                build_id,
                // This flag keeps readers from symbolizing again.
                has_functions: true,
                ..messages::Mapping::default()
            });
        }
    }

    /// Returns the message with the fields of the whole profile.
    fn head(&mut self, columns: &[Column], measure: &Measure) -> messages::Profile {
        let profile = self.profile;
        let meta = &profile.meta;
        let mut value_type = |name: &str, unit: &str| messages::ValueType {
            r#type: self.text(name),
            unit: self.text(unit),
        };
        let types = columns.iter();
        let sample_type: Vec<_> = types
            .map(|column| value_type(&column.name, column.unit))
            .collect();
        let (period_type, period) = match (profile.unit, measure) {
            (Unit::Samples, Measure::Time(time)) => (("cpu", "nanoseconds"), *time),
            (Unit::Samples, Measure::Events(name, each)) => ((&**name, "count"), *each),
            (Unit::Nanoseconds, _) => (("wall", "nanoseconds"), 1),
        };
        let period_type = value_type(period_type.0, period_type.1);
        let comments = [
            format!("{} {}", meta.tool, meta.tool_version),
            meta.command_line.join(" "),
            format!("{}, Linux {}", meta.host, meta.kernel),
            profile.losses.to_string(),
        ];
        messages::Profile {
            default_sample_type: sample_type.last().map_or(0, |last| last.r#type),
            sample_type,
            time_nanos: signed(meta.window.start_utc_ns),
            duration_nanos: signed(meta.window.length_ns),
            period_type: Some(period_type),
            period: signed(period),
            comment: comments.iter().map(|line| self.text(line)).collect(),
            ..messages::Profile::default()
        }
    }

    fn sample(
        &mut self,
        sample: &Sample,
        weight: &Weight,
        columns: &[Column],
        measure: &Measure,
    ) -> messages::Sample {
        let values = columns.iter();
        let values = values.map(|column| signed(column.value(sample, weight, measure)));
        messages::Sample {
            location_id: self.stack(sample),
            value: values.collect(),
            label: self.labels(sample),
        }
    }

    /// Returns the IDs of the locations of a sample's stack, leaf first.
    fn stack(&mut self, sample: &Sample) -> Vec<u64> {
        let mut ids = Vec::new();
        // Functions that are inlined at one address, innermost first.
        let mut inlined = Vec::new();
        let boxes = drawn(self.profile, sample);
        let is_frame = |drawn: &&Drawn| matches!(drawn, Drawn::Frame(_));
        let own = boxes.iter().take_while(is_frame).count();
        for (place, drawn) in boxes.into_iter().enumerate().rev() {
            match drawn {
                // A waker's frames are in reverse order, so each is a location of its own.
                Drawn::Frame(frame) if place < own && self.profile.frames[frame].is_inlined => {
                    inlined.push(frame);
                }
                Drawn::Frame(frame) => ids.push(self.location(&mut inlined, frame)),
                Drawn::Text(text) => ids.push(self.text_location(&text)),
            }
        }
        // The caller of inlined functions is missing if a stack is cut short.
        if let Some(outermost) = inlined.pop() {
            ids.push(self.location(&mut inlined, outermost));
        }
        ids
    }

    /// Returns the ID of the location of a frame and of the functions inlined there. The function
    /// empties `inlined`.
    fn location(&mut self, inlined: &mut Vec<Id<Frame>>, frame: Id<Frame>) -> u64 {
        if inlined.is_empty()
            && let Some(&known) = self.frames.get(&frame)
        {
            return known;
        }
        let is_single = inlined.is_empty();
        inlined.push(frame);
        let line = inlined.drain(..).map(|frame| self.line(frame)).collect();
        let known = &self.profile.frames[frame];
        let mapping_id = known
            .module
            .map_or(0, |module| self.modules[module.index()]);
        let address = known.address.unwrap_or(0);
        if let Some(mapping) = mapping_id
            .checked_sub(1)
            .and_then(|place| self.mappings.get_mut(place as usize))
        {
            let after = address.saturating_add(1);
            mapping.memory_limit = mapping.memory_limit.max(after);
            mapping.has_inline_frames |= !is_single;
        }
        let location = messages::Location {
            id: 0,
            mapping_id,
            address,
            line,
        };
        let id = self.locations.id(location).index() as u64 + 1;
        if is_single {
            self.frames.insert(frame, id);
        }
        id
    }

    fn line(&mut self, frame: Id<Frame>) -> messages::Line {
        let profile = self.profile;
        let frame = &profile.frames[frame];
        let function = frame.function.map(|function| &profile.functions[function]);
        let text_of = |name: Name| &*profile.names[name];
        let system_name = function.and_then(|function| function.system_name);
        let file = function.and_then(|function| function.file);
        let line = frame.line.map_or(0, |line| i64::from(line.get()));
        if let Some(module) = frame.module
            && frame.kind != FrameKind::Marker
        {
            let mapping = &mut self.mappings[self.modules[module.index()] as usize - 1];
            mapping.has_filenames |= file.is_some();
            mapping.has_line_numbers |= line > 0;
        }
        let function = messages::Function {
            id: 0,
            name: self.text(text_of(frame.name)),
            // pprof shortens a name that is also the system name.
            system_name: system_name.map_or(0, |name| self.text(text_of(name))),
            filename: file.map_or(0, |file| self.text(text_of(file))),
            start_line: function
                .and_then(|function| function.line)
                .map_or(0, |line| i64::from(line.get())),
        };
        messages::Line {
            function_id: self.functions.id(function).index() as u64 + 1,
            line,
        }
    }

    /// Returns the ID of the location of a text that is no frame.
    fn text_location(&mut self, text: &str) -> u64 {
        let function = messages::Function {
            name: self.text(text),
            ..messages::Function::default()
        };
        let function_id = self.functions.id(function).index() as u64 + 1;
        let line = messages::Line {
            function_id,
            line: 0,
        };
        let location = messages::Location {
            line: vec![line],
            ..messages::Location::default()
        };
        self.locations.id(location).index() as u64 + 1
    }

    fn labels(&mut self, sample: &Sample) -> Vec<messages::Label> {
        let profile = self.profile;
        let mut labels = Vec::new();
        let mut add = |key: &str, value: &str| {
            let (key, str) = (self.text(key), self.text(value));
            labels.push(messages::Label { key, str });
        };
        add("thread_name", &thread_name(profile, sample.comm));
        if let Some(id) = sample.thread {
            for (key, id) in [("process_id", id.pid), ("thread_id", id.tid)] {
                if id != 0 {
                    add(key, &id.to_string());
                }
            }
        }
        if let Some(state) = sample.state {
            add("state", state_name(state));
        }
        if let Some(waker) = wakers(profile, sample).first() {
            add(
                "waker",
                &thread_field(profile, waker.comm, waker.thread, Ids::Thread),
            );
        }
        for (key, value) in crate::text::waits::labels(profile, sample) {
            add(key, &value);
        }
        labels
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
