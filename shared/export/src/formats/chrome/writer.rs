//! Writes events one by one, in bounded memory.

use std::cell::OnceCell;
use std::io::{self, Write};

use profile::{Profile, Stack, ThreadId};

use crate::lanes::Origin;

/// Bytes after which the buffer is written.
const MAX_BUFFERED: usize = 64 << 10;

/// An event without its arguments.
#[derive(Clone, Copy)]
pub(super) struct Event<'a> {
    /// Letter of the event's kind.
    pub(super) phase: &'static str,
    pub(super) name: &'a str,
    pub(super) thread: ThreadId,
    pub(super) category: Option<&'static str>,
    /// Time since the origin.
    pub(super) at_ns: Option<u64>,
    pub(super) length_ns: Option<u64>,
    /// Number that connects events.
    pub(super) id: Option<u64>,
    /// Letter of what an instant belongs to: a thread, or the whole file.
    pub(super) scope: Option<&'static str>,
}

impl<'a> Event<'a> {
    pub(super) fn new(phase: &'static str, name: &'a str, thread: ThreadId) -> Event<'a> {
        Event {
            phase,
            name,
            thread,
            category: None,
            at_ns: None,
            length_ns: None,
            id: None,
            scope: None,
        }
    }
}

/// Writer of events.
pub(super) struct Writer<'a> {
    profile: &'a Profile,
    writer: &'a mut dyn Write,
    buffer: Vec<u8>,
    /// Names of frames as the inside of JSON strings, by the index of the frame.
    frames: Vec<OnceCell<Box<[u8]>>>,
    is_first: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn new(profile: &'a Profile, writer: &'a mut dyn Write) -> Writer<'a> {
        Writer {
            profile,
            writer,
            // Perfetto stops at keys that it does not know, so the events come first.
            buffer: b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[".to_vec(),
            frames: vec![OnceCell::new(); profile.frames.len()],
            is_first: true,
        }
    }

    /// Writes an event with the arguments that `describe` adds.
    pub(super) fn event(
        &mut self,
        event: &Event<'_>,
        describe: impl FnOnce(&mut Arguments<'_>),
    ) -> io::Result<()> {
        let buffer = &mut self.buffer;
        let comma: &[u8] = if self.is_first { b"\n" } else { b",\n" };
        self.is_first = false;
        buffer.extend_from_slice(comma);
        buffer.extend_from_slice(b"{\"ph\":\"");
        buffer.extend_from_slice(event.phase.as_bytes());
        buffer.extend_from_slice(b"\",\"name\":");
        push_text(buffer, event.name);
        if let Some(category) = event.category {
            buffer.extend_from_slice(b",\"cat\":");
            push_text(buffer, category);
        }
        let ThreadId { pid, tid } = event.thread;
        push(buffer, format_args!(",\"pid\":{pid},\"tid\":{tid}"));
        for (key, ns) in [("ts", event.at_ns), ("dur", event.length_ns)] {
            if let Some(ns) = ns {
                let (us, rest) = (ns / 1_000, ns % 1_000);
                push(buffer, format_args!(",\"{key}\":{us}.{rest:03}"));
            }
        }
        if let Some(id) = event.id {
            push(buffer, format_args!(",\"id\":\"{id:#x}\""));
        }
        if event.phase == "f" {
            // The arrow ends in the slice at its time, not in the next one.
            buffer.extend_from_slice(b",\"bp\":\"e\"");
        }
        if let Some(scope) = event.scope {
            push(buffer, format_args!(",\"s\":\"{scope}\""));
        }
        let mut arguments = Arguments {
            profile: self.profile,
            buffer,
            frames: &self.frames,
            has_any: false,
        };
        describe(&mut arguments);
        let end: &[u8] = if arguments.has_any { b"}}" } else { b"}" };
        buffer.extend_from_slice(end);
        if self.buffer.len() > MAX_BUFFERED {
            self.write_buffer()?;
        }
        Ok(())
    }

    /// Writes the end of the file: the circumstances of the measurement.
    pub(super) fn finish(mut self, origin: Origin) -> io::Result<()> {
        let meta = &self.profile.meta;
        let circumstances = [
            ("tool", format!("{} {}", meta.tool, meta.tool_version)),
            ("command_line", meta.command_line.join(" ")),
            ("host", meta.host.to_string()),
            ("kernel", format!("Linux {}", meta.kernel)),
            ("targets", meta.targets.to_string()),
            ("start_monotonic_ns", origin.monotonic_ns.to_string()),
            ("start_utc_ns", origin.utc_ns.to_string()),
            ("losses", self.profile.losses.to_string()),
        ];
        let buffer = &mut self.buffer;
        buffer.extend_from_slice(b"\n],\"otherData\":{");
        for (number, (key, value)) in circumstances.iter().enumerate() {
            let comma: &[u8] = if number == 0 { b"" } else { b"," };
            buffer.extend_from_slice(comma);
            push_text(buffer, key);
            buffer.push(b':');
            push_text(buffer, value);
        }
        buffer.extend_from_slice(b"}}\n");
        self.write_buffer()
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        self.writer.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Arguments of an event, which are written as they are added.
pub(super) struct Arguments<'a> {
    profile: &'a Profile,
    buffer: &'a mut Vec<u8>,
    frames: &'a [OnceCell<Box<[u8]>>],
    has_any: bool,
}

impl Arguments<'_> {
    fn key(&mut self, key: &str) {
        let start: &[u8] = if self.has_any { b"," } else { b",\"args\":{" };
        self.has_any = true;
        self.buffer.extend_from_slice(start);
        push_text(self.buffer, key);
        self.buffer.push(b':');
    }

    pub(super) fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        push_text(self.buffer, text);
    }

    pub(super) fn number(&mut self, key: &str, number: u64) {
        self.key(key);
        push(self.buffer, format_args!("{number}"));
    }

    /// Adds an object of texts.
    pub(super) fn texts<'a>(&mut self, key: &str, texts: impl Iterator<Item = (&'a str, &'a str)>) {
        self.key(key);
        let mut before = b'{';
        for (key, text) in texts {
            self.buffer.push(before);
            push_text(self.buffer, key);
            self.buffer.push(b':');
            push_text(self.buffer, text);
            before = b',';
        }
        if before == b'{' {
            self.buffer.push(before);
        }
        self.buffer.push(b'}');
    }

    /// Adds a value that is JSON already.
    pub(super) fn json(&mut self, key: &str, value: &[u8]) {
        self.key(key);
        self.buffer.extend_from_slice(value);
    }

    /// Adds a stack as one text, leaf first. Adds nothing for a stack without frames.
    pub(super) fn stack(&mut self, key: &str, stack: Stack) {
        if stack == Stack::default() {
            return;
        }
        self.key(key);
        self.buffer.push(b'"');
        let stacks = &self.profile.stacks;
        let kernel = stacks.leaf_first(stack.kernel);
        let frames = kernel.chain(stacks.leaf_first(stack.user));
        for (number, frame) in frames.enumerate() {
            if number > 0 {
                self.buffer.extend_from_slice(" ← ".as_bytes());
            }
            let name = self.frames[frame.index()].get_or_init(|| {
                let mut name = Vec::new();
                push_text(&mut name, self.profile.name(&self.profile.frames[frame]));
                // The quotes enclose the whole stack.
                name[1..name.len() - 1].into()
            });
            self.buffer.extend_from_slice(name);
        }
        self.buffer.push(b'"');
    }
}

pub(super) fn push_text(buffer: &mut Vec<u8>, text: &str) {
    // A text is JSON, and writing to memory does not fail.
    let _ = serde_json::to_writer(buffer, text);
}

pub(super) fn push(buffer: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = buffer.write_fmt(arguments);
}
