//! One JSON object for programs, which docs/profile.schema.json describes.

mod off_cpu;

use std::borrow::Cow;
use std::io::{self, Write};

use profile::{
    FrameKind, Id, Losses, Module, ModuleKind, Process, Profile, Rate, Sample, StackId, Thread,
    Unit, WalkEnds, Weight,
};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use self::off_cpu::OffCpu;
use crate::format::{Format, Needs};
use crate::measure::state_name;
use crate::text::frames::{source, thread_name, wakers};
use crate::text::options::{Options, Written};
use crate::text::waits::labels;

/// The JSON format.
pub struct Json;

/// Version of the object. A change that breaks programs that read this version needs a new number.
const VERSION: u32 = 1;

impl Format for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".json"]
    }

    fn readers(&self) -> &'static str {
        "programs: [a schema](../profile.schema.json) describes it"
    }

    fn needs(&self) -> Needs {
        Needs::ALL
    }

    fn write(
        &self,
        profile: &Profile,
        _options: &Options,
        writer: &mut dyn Write,
    ) -> io::Result<Written> {
        serde_json::to_writer(&mut *writer, &Object(profile))?;
        writeln!(writer)?;
        Ok(Written::default())
    }
}

/// The whole object. The serializer iterates over the profile, because a profile can have many
/// samples.
struct Object<'a>(&'a Profile);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Object(profile) = *self;
        let unit = match profile.unit {
            Unit::Nanoseconds => "nanoseconds",
            Unit::Samples => "samples",
        };
        let modules = || profile.modules.iter().map(move |it| module(profile, it));
        let frames = || profile.frames.iter().map(move |it| Frame::of(profile, it));
        let processes = || profile.processes.iter().map(process);
        let threads = || profile.threads.iter().map(move |it| thread(profile, it));
        let samples = || {
            let samples = profile.samples.iter();
            samples.map(move |(sample, weight)| Row::of(profile, sample, weight))
        };
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("version", &VERSION)?;
        object.serialize_entry("meta", &meta(profile))?;
        object.serialize_entry("unit", unit)?;
        object.serialize_entry("modules", &Rows(modules))?;
        object.serialize_entry("frames", &Rows(frames))?;
        object.serialize_entry("processes", &Rows(processes))?;
        object.serialize_entry("threads", &Rows(threads))?;
        object.serialize_entry("samples", &Rows(samples))?;
        object.serialize_entry("lost", &lost(profile.losses))?;
        object.serialize_entry("walk_ends", &walk_ends(profile.walk_ends))?;
        if let Some(offcpu) = OffCpu::of(profile) {
            // An earlier program, denet, used these names.
            object.serialize_entry("ebpf", &json!({ "offcpu": offcpu }))?;
        }
        object.end()
    }
}

/// Rows that are built as they are written.
struct Rows<Make>(Make);

impl<Make, Iter> Serialize for Rows<Make>
where
    Make: Fn() -> Iter,
    Iter: Iterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0())
    }
}

fn meta(profile: &Profile) -> Value {
    let meta = &profile.meta;
    let sampling = meta.sampling.as_ref().map(|sampling| {
        let (rate, number) = match sampling.rate {
            Rate::Frequency(frequency) => ("frequency", frequency),
            Rate::Period(period) => ("period", period),
        };
        json!({
            "event": sampling.event,
            rate: number,
            "ns_per_sample": sampling.nanoseconds(),
        })
    });
    let lengths = meta.lengths.map(|lengths| {
        json!({
            "least_ns": lengths.least,
            "most_ns": Some(lengths.most).filter(|most| *most < u64::MAX),
            "short_are_sampled": lengths.short_are_sampled,
        })
    });
    json!({
        "tool": meta.tool,
        "tool_version": meta.tool_version,
        "command_line": meta.command_line,
        "host": meta.host,
        "kernel": meta.kernel,
        "cpus": meta.cpus,
        "targets": meta.targets,
        "window": {
            "start_ns": meta.window.start_ns,
            "start_utc_ns": meta.window.start_utc_ns,
            "length_ns": meta.window.length_ns,
            "requested_ns": meta.window.requested_ns,
        },
        "sampling": sampling,
        "lengths": lengths,
    })
}

fn module(profile: &Profile, module: &Module) -> Value {
    json!({
        "path": profile.names[module.path],
        "build_id": module.build_id.map(|digits| &profile.names[digits]),
        "kind": match module.kind {
            ModuleKind::File => "file",
            ModuleKind::Vdso => "vdso",
            ModuleKind::Jit => "jit",
            ModuleKind::Kernel => "kernel",
            ModuleKind::KernelModule => "kernel module",
            ModuleKind::Source => "source",
        },
    })
}

/// A frame. Fields that are not known are left out.
#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<usize>,
    /// Hexadecimal text, because JSON readers parse numbers with only 53 bits of precision.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    inlined: bool,
}

impl<'a> Frame<'a> {
    fn of(profile: &'a Profile, frame: &'a profile::Frame) -> Frame<'a> {
        let function = frame.function.map(|function| &profile.functions[function]);
        let system_name = function.and_then(|function| function.system_name);
        let file = function.and_then(|function| function.file);
        let source = source(profile, frame);
        Frame {
            name: profile.name(frame),
            kind: match &frame.kind {
                FrameKind::User => "user",
                FrameKind::Kernel => "kernel",
                FrameKind::Marker => "marker",
                FrameKind::Interpreted(language) => language.as_str(),
            },
            system_name: system_name.map(|name| &*profile.names[name]),
            module: frame.module.map(Id::index),
            address: frame.address.map(|address| format!("{address:#x}")),
            offset: frame.offset,
            // A frame of an interpreter can have a file without a line.
            file: file.map(|file| &*profile.names[file]),
            line: source.map(|(_, line)| line),
            inlined: frame.is_inlined,
        }
    }
}

fn process(process: &Process) -> Value {
    json!({
        "pid": process.pid,
        "parent": process.parent,
        "start_ticks": process.start_ticks,
        "executable": process.executable,
        "command_line": process.command_line,
        "cgroup": process.cgroup,
    })
}

fn thread(profile: &Profile, thread: &Thread) -> Value {
    let clock = thread.clock;
    json!({
        "pid": thread.id.pid,
        "tid": thread.id.tid,
        "comm": thread_name(profile, thread.comm),
        "started_ns": clock.started_ns,
        "ended_ns": clock.ended_ns,
        "running_ns": clock.running_ns,
        "runnable_ns": clock.runnable_ns,
        "blocked_ns": clock.blocked_ns,
        "voluntary": clock.voluntary,
        "involuntary": clock.involuntary,
    })
}

#[derive(Serialize)]
struct Row<'a> {
    comm: String,
    pid: Option<u32>,
    tid: Option<u32>,
    state: Option<&'static str>,
    /// Indexes of frames, root first.
    user: Vec<usize>,
    kernel: Vec<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    wakers: Vec<Waker>,
    #[serde(skip_serializing_if = "Labels::is_empty")]
    labels: Labels<'a>,
    value: u64,
    events: u64,
    longest_ns: u64,
    shortest_ns: u64,
}

#[derive(Serialize)]
struct Waker {
    comm: String,
    pid: Option<u32>,
    tid: Option<u32>,
    user: Vec<usize>,
    kernel: Vec<usize>,
}

/// Labels as keys and values.
struct Labels<'a>(Vec<(&'a str, Cow<'a, str>)>);

impl Labels<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Labels<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'a> Row<'a> {
    fn of(profile: &'a Profile, sample: &Sample, weight: &Weight) -> Row<'a> {
        let places = |stack| places(profile, stack);
        let wakers = wakers(profile, sample).iter().map(|waker| Waker {
            comm: thread_name(profile, waker.comm),
            pid: waker.thread.map(|id| id.pid),
            tid: waker.thread.map(|id| id.tid),
            user: places(waker.stack.user),
            kernel: places(waker.stack.kernel),
        });
        Row {
            comm: thread_name(profile, sample.comm),
            pid: sample.thread.map(|id| id.pid),
            tid: sample.thread.map(|id| id.tid),
            state: sample.state.map(state_name),
            user: places(sample.stack.user),
            kernel: places(sample.stack.kernel),
            wakers: wakers.collect(),
            labels: Labels(labels(profile, sample)),
            value: weight.value,
            events: weight.events,
            longest_ns: weight.longest,
            shortest_ns: weight.shortest,
        }
    }
}

/// Returns the indexes of a stack's frames, root first.
fn places(profile: &Profile, stack: StackId) -> Vec<usize> {
    let frames = profile.stacks.root_first(stack).into_iter();
    frames.map(Id::index).collect()
}

fn lost(losses: Losses) -> Value {
    json!({
        "events": losses.events,
        "stacks": losses.stacks,
        "threads": losses.threads,
        "incomplete_user": losses.incomplete_user,
    })
}

fn walk_ends(ends: WalkEnds) -> Value {
    json!({
        "root": ends.root,
        "by_frame_pointer": ends.by_frame_pointer,
        "no_mapping": ends.no_mapping,
        "read_failed": ends.read_failed,
        "too_deep": ends.too_deep,
        "no_rule": ends.no_rule,
        "code_32_bit": ends.code_32_bit,
    })
}

#[cfg(test)]
mod tests;
