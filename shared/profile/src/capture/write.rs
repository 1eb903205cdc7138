//! From a profile to a capture.

use std::io::{self, Write};

use prost::Message;
use zstd::Encoder;

use super::proto::{self, record::Kind};
use super::{MAGIC, VERSION};
use crate::{FrameKind, Id, Profile, Sample, State, ThreadId, Unit};

/// Rows in a record.
const ROWS: usize = 4096;
/// Of zstd: fast, and half of what more effort would save.
const LEVEL: i32 = 1;

/// Writes a profile.
///
/// # Errors
/// Those of the writer.
pub fn write(profile: &Profile, mut writer: impl Write) -> io::Result<()> {
    writer.write_all(&MAGIC)?;
    writer.write_all(&[VERSION])?;
    let mut encoder = Encoder::new(writer, LEVEL)?;
    encoder.include_checksum(true)?;
    let mut records = Records { encoder };
    records.put(Kind::Meta(meta(profile)))?;
    records.put_rows(profile.names.iter(), |rows| {
        let names = rows.map(|name| name.to_string()).collect();
        Kind::Names(proto::Names { names })
    })?;
    records.put_rows(profile.modules.iter(), |rows| {
        let modules = rows.map(|module| proto::Module {
            name: number(module.name),
        });
        Kind::Modules(proto::Modules {
            modules: modules.collect(),
        })
    })?;
    records.put_rows(profile.frames.iter(), |rows| {
        let frames = rows.map(|frame| proto::Frame {
            name: number(frame.name),
            kind: frame_kind(frame.kind).into(),
            module: frame.module.map_or(0, |module| number(module) + 1),
        });
        Kind::Frames(proto::Frames {
            frames: frames.collect(),
        })
    })?;
    records.put_rows(profile.stacks.nodes(), |rows| {
        let (callers, leaves) = rows
            .map(|(callers, leaf)| (callers.index() as u32, number(leaf)))
            .unzip();
        Kind::Stacks(proto::Stacks { callers, leaves })
    })?;
    records.put_rows(profile.wakers.iter(), |rows| {
        let chains = rows.map(|wakers| proto::Chain {
            wakers: wakers.iter().map(waker).collect(),
        });
        Kind::Wakers(proto::Wakers {
            chains: chains.collect(),
        })
    })?;
    records.put_rows(profile.samples.iter(), |rows| {
        let mut samples = proto::Samples::default();
        for (sample, weight) in rows {
            push(&mut samples, sample);
            samples.values.push(weight.value);
            samples.events.push(weight.events);
            samples.longest.push(weight.longest);
        }
        Kind::Samples(samples)
    })?;
    records.put_rows(profile.threads.iter(), |rows| {
        let threads = rows.map(thread).collect();
        Kind::Threads(proto::Threads { threads })
    })?;
    let losses = profile.losses;
    records.put(Kind::End(proto::End {
        losses: Some(proto::Losses {
            events: losses.events,
            stacks: losses.stacks,
            threads: losses.threads,
            incomplete_user: losses.incomplete_user,
        }),
    }))?;
    records.encoder.finish()?.flush()
}

struct Records<'a, W: Write> {
    encoder: Encoder<'a, W>,
}

impl<W: Write> Records<'_, W> {
    fn put(&mut self, kind: Kind) -> io::Result<()> {
        let record = proto::Record { kind: Some(kind) };
        self.encoder
            .write_all(&record.encode_length_delimited_to_vec())
    }

    /// Puts so many rows into a record as it holds.
    fn put_rows<Row>(
        &mut self,
        rows: impl Iterator<Item = Row>,
        record: impl Fn(&mut dyn Iterator<Item = Row>) -> Kind,
    ) -> io::Result<()> {
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            self.put(record(&mut rows.by_ref().take(ROWS)))?;
        }
        Ok(())
    }
}

fn number<Row>(id: Id<Row>) -> u32 {
    id.index() as u32
}

fn meta(profile: &Profile) -> proto::Meta {
    let unit = match profile.unit {
        Unit::Samples => proto::Unit::Samples,
        Unit::Nanoseconds => proto::Unit::Nanoseconds,
    };
    proto::Meta {
        tool: profile.tool.clone(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        unit: unit.into(),
    }
}

fn frame_kind(kind: FrameKind) -> proto::FrameKind {
    match kind {
        FrameKind::User => proto::FrameKind::FrameUser,
        FrameKind::Kernel => proto::FrameKind::FrameKernel,
        FrameKind::Marker => proto::FrameKind::FrameMarker,
    }
}

fn waker(waker: &crate::Waker) -> proto::Waker {
    let ThreadId { pid, tid } = waker.thread.unwrap_or_default();
    proto::Waker {
        comm: number(waker.comm),
        pid,
        tid,
        is_thread: waker.thread.is_some(),
        user: waker.stack.user.index() as u32,
        kernel: waker.stack.kernel.index() as u32,
    }
}

fn push(samples: &mut proto::Samples, sample: &Sample) {
    let ThreadId { pid, tid } = sample.thread.unwrap_or_default();
    let state = match sample.state {
        None => 0,
        Some(State::Running) => 1,
        Some(State::Runnable) => 2,
        Some(State::Blocked) => 3,
    };
    let is_known = u32::from(sample.thread.is_some());
    samples.comms.push(number(sample.comm));
    samples.pids.push(pid);
    samples.tids.push(tid);
    samples.users.push(sample.stack.user.index() as u32);
    samples.kernels.push(sample.stack.kernel.index() as u32);
    samples.states.push(state | is_known << 2);
    let chain = sample.wakers.map_or(0, |wakers| number(wakers) + 1);
    samples.chains.push(chain);
}

fn thread(thread: &crate::Thread) -> proto::Thread {
    let crate::Thread { id, comm, clock } = *thread;
    proto::Thread {
        pid: id.pid,
        tid: id.tid,
        comm: number(comm),
        started_ns: clock.started_ns,
        ended_ns: clock.ended_ns,
        running_ns: clock.running_ns,
        runnable_ns: clock.runnable_ns,
        blocked_ns: clock.blocked_ns,
        voluntary: clock.voluntary,
        involuntary: clock.involuntary,
    }
}
