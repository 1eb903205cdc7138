//! Writes a profile as a capture.

use std::collections::HashMap;
use std::io::{self, Write};
use std::num::NonZeroU32;

use prost::Message;
use zstd::Encoder;

use super::kinds;
use super::proto::{self, record::Kind};
use super::times::{put_intervals, put_request_spans, put_thread_events, put_timed_samples};
use super::waits::{put_resource, put_wait};
use super::{LONGEST_RECORD, MAGIC, ROWS, VERSION};
use profile::{Detail, Ending, Id, Meta, ModuleKind, Profile, Rate, Sample, State, ThreadId, Unit};

/// Compression level of zstd: fast, with half of the saving of the slow levels.
pub(super) const LEVEL: i32 = 1;

/// Writes a profile as a capture.
///
/// # Errors
/// The writer fails.
pub fn write(profile: &Profile, mut writer: impl Write) -> io::Result<()> {
    writer.write_all(&MAGIC)?;
    writer.write_all(&[VERSION])?;
    let mut encoder = Encoder::new(writer, LEVEL)?;
    encoder.include_checksum(true)?;
    write_records(profile, &mut encoder)?;
    encoder.finish()?.flush()
}

/// Writes the records of a profile as a capture has them, but neither the head nor compressed. The
/// records are those of [`VERSION`].
///
/// # Errors
/// The writer fails.
pub fn write_records(profile: &Profile, writer: impl Write) -> io::Result<()> {
    Records { writer }.put_profile(profile, |_| Ok(()))
}

impl<W: Write> Records<W> {
    /// Puts the circumstances of a measurement.
    pub(super) fn put_meta(&mut self, profile: &Profile) -> io::Result<()> {
        self.put(Kind::Meta(meta(profile)))
    }

    /// Puts all records of a profile. `after_samples` puts records that refer to samples.
    pub(super) fn put_profile(
        &mut self,
        profile: &Profile,
        after_samples: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let records = self;
        records.put_meta(profile)?;
        let details = DetailNames::new(profile);
        let names = profile.names.iter().map(|name| &**name);
        records.put_rows(names.chain(details.added.iter().copied()), |rows| {
            let names = rows.map(str::to_owned).collect();
            Kind::Names(proto::Names { names })
        })?;
        records.put_rows(profile.modules.iter(), |rows| {
            let modules = rows.map(|module| proto::Module {
                path: number(module.path),
                kind: module_kind(module.kind).into(),
                build_id: optional(module.build_id),
            });
            Kind::Modules(proto::Modules {
                modules: modules.collect(),
            })
        })?;
        records.put_rows(profile.functions.iter(), |rows| {
            let functions = rows.map(|function| proto::Function {
                name: number(function.name),
                system_name: optional(function.system_name),
                file: optional(function.file),
                line: function.line.map_or(0, NonZeroU32::get),
            });
            Kind::Functions(proto::Functions {
                functions: functions.collect(),
            })
        })?;
        records.put_rows(profile.frames.iter(), |rows| {
            let frames = rows.map(|frame| {
                let (kind, language) = kinds::to_capture(frame.kind);
                proto::Frame {
                    name: number(frame.name),
                    kind: kind.into(),
                    module: optional(frame.module),
                    address: frame.address,
                    function: optional(frame.function),
                    offset: frame.offset,
                    is_inlined: frame.is_inlined,
                    line: frame.line.map_or(0, NonZeroU32::get),
                    language,
                }
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
        records.put_rows(profile.resources.iter(), |rows| {
            let resources = rows.map(put_resource).collect();
            Kind::Resources(proto::Resources { resources })
        })?;
        records.put_rows(profile.waits.iter(), |rows| {
            let waits = rows.map(|wait| put_wait(wait, details.number(wait.kind.detail)));
            Kind::Waits(proto::Waits {
                waits: waits.collect(),
            })
        })?;
        records.put_rows(profile.labels.iter(), |rows| {
            let sets = rows.map(|labels| {
                let labels = labels.iter();
                let (keys, values) = labels
                    .map(|label| (number(label.key), number(label.value)))
                    .unzip();
                proto::LabelSet { keys, values }
            });
            Kind::Labels(proto::Labels {
                sets: sets.collect(),
            })
        })?;
        records.put_rows(profile.samples.iter(), |rows| {
            let mut samples = proto::Samples::default();
            for (sample, weight) in rows {
                push(&mut samples, sample);
                if !profile.labels.is_empty() {
                    samples.labels.push(optional(sample.labels));
                }
                if !profile.waits.is_empty() {
                    samples.waits.push(optional(sample.wait));
                }
                samples.values.push(weight.value);
                samples.events.push(weight.events);
                samples.longest.push(weight.longest);
                samples.shortest.push(weight.shortest);
                samples.squares.push(weight.squares);
            }
            Kind::Samples(samples)
        })?;
        after_samples(records)?;
        records.put_rows(profile.threads.iter(), |rows| {
            let threads = rows.map(thread).collect();
            Kind::Threads(proto::Threads { threads })
        })?;
        records.put_rows(profile.processes.iter(), |rows| {
            let processes = rows.map(process).collect();
            Kind::Processes(proto::Processes { processes })
        })?;
        let times = &profile.times;
        records.put_rows(times.intervals.iter(), |rows| {
            Kind::Intervals(put_intervals(rows))
        })?;
        records.put_rows(times.timed_samples.iter(), |rows| {
            Kind::TimedSamples(put_timed_samples(rows))
        })?;
        records.put_rows(times.thread_events.iter(), |rows| {
            Kind::ThreadEvents(put_thread_events(rows))
        })?;
        records.put_rows(times.request_spans.iter(), |rows| {
            Kind::RequestSpans(put_request_spans(rows))
        })?;
        let (losses, ends) = (profile.losses, profile.walk_ends);
        records.put(Kind::End(proto::End {
            losses: Some(proto::Losses {
                events: losses.events,
                stacks: losses.stacks,
                threads: losses.threads,
                incomplete_user: losses.incomplete_user,
                times: losses.times,
            }),
            walk_ends: Some(proto::WalkEnds {
                root: ends.root,
                by_frame_pointer: ends.by_frame_pointer,
                no_mapping: ends.no_mapping,
                read_failed: ends.read_failed,
                too_deep: ends.too_deep,
                no_rule: ends.no_rule,
                code_32_bit: ends.code_32_bit,
            }),
        }))
    }
}

/// Names of the details of waits. Names that the profile lacks follow the profile's names.
struct DetailNames {
    added: Vec<&'static str>,
    numbers: HashMap<Detail, u32>,
}

impl DetailNames {
    fn new(profile: &Profile) -> DetailNames {
        let mut details = DetailNames {
            added: Vec::new(),
            numbers: HashMap::new(),
        };
        for wait in profile.waits.iter() {
            let detail = wait.kind.detail;
            if let Some(name) = detail.known_name()
                && !details.numbers.contains_key(&detail)
            {
                let place = profile.names.len() + details.added.len();
                details.numbers.insert(detail, place as u32);
                details.added.push(name);
            }
        }
        details
    }

    fn number(&self, detail: Detail) -> u32 {
        match detail {
            Detail::Named(name) => number(name),
            known => self.numbers.get(&known).copied().unwrap_or(0),
        }
    }
}

/// Destination of records.
pub(super) struct Records<W> {
    pub(super) writer: W,
}

impl<W: Write> Records<W> {
    pub(super) fn put(&mut self, kind: Kind) -> io::Result<()> {
        self.writer.write_all(&encoded(kind))
    }

    /// Puts rows into as many records as they need.
    pub(super) fn put_rows<Row: Clone>(
        &mut self,
        mut rows: impl Iterator<Item = Row>,
        record: impl Fn(&mut dyn Iterator<Item = Row>) -> Kind,
    ) -> io::Result<()> {
        loop {
            let some: Vec<Row> = rows.by_ref().take(ROWS).collect();
            if some.is_empty() {
                return Ok(());
            }
            self.put_some(&some, &record)?;
        }
    }

    /// Puts rows into one record, or splits them if they are too long for one.
    fn put_some<Row: Clone>(
        &mut self,
        rows: &[Row],
        record: &impl Fn(&mut dyn Iterator<Item = Row>) -> Kind,
    ) -> io::Result<()> {
        let bytes = encoded(record(&mut rows.iter().cloned()));
        if bytes.len() <= LONGEST_RECORD || rows.len() == 1 {
            return self.writer.write_all(&bytes);
        }
        let (first, second) = rows.split_at(rows.len() / 2);
        self.put_some(first, record)?;
        self.put_some(second, record)
    }
}

fn encoded(kind: Kind) -> Vec<u8> {
    let record = proto::Record { kind: Some(kind) };
    record.encode_length_delimited_to_vec()
}

pub(super) fn number<Row>(id: Id<Row>) -> u32 {
    id.index() as u32
}

/// Returns the row's number counted from 1, or 0 for `None`.
pub(super) fn optional<Row>(id: Option<Id<Row>>) -> u32 {
    id.map_or(0, |id| number(id) + 1)
}

fn meta(profile: &Profile) -> proto::Meta {
    let unit = match profile.unit {
        Unit::Samples => proto::Unit::Samples,
        Unit::Nanoseconds => proto::Unit::Nanoseconds,
    };
    let Meta {
        tool,
        tool_version,
        command_line,
        host,
        kernel,
        cpus,
        window,
        targets,
        sampling,
        lengths,
        bursts,
        timeline_least_ns,
    } = profile.meta.clone();
    let sampling = sampling.map(|sampling| {
        let (frequency, period) = match sampling.rate {
            Rate::Frequency(frequency) => (frequency, 0),
            Rate::Period(period) => (0, period),
        };
        proto::Sampling {
            event: sampling.event.into(),
            frequency,
            period,
        }
    });
    proto::Meta {
        tool: tool.into(),
        tool_version: tool_version.into(),
        unit: unit.into(),
        command_line: command_line.into_iter().map(String::from).collect(),
        host: host.into(),
        kernel: kernel.into(),
        cpus,
        window: Some(proto::Window {
            start_ns: window.start_ns,
            start_utc_ns: window.start_utc_ns,
            length_ns: window.length_ns,
            requested_ns: window.requested_ns,
            ending: match window.ending {
                Ending::Elapsed => proto::Ending::Elapsed,
                Ending::Interrupted => proto::Ending::Interrupted,
                Ending::TargetGone => proto::Ending::TargetGone,
            }
            .into(),
        }),
        targets: targets.into(),
        sampling,
        lengths: lengths.map(|lengths| proto::Lengths {
            least: lengths.least,
            most: lengths.most,
            short_are_sampled: lengths.short_are_sampled,
        }),
        bursts: (bursts.iter())
            .map(|bursts| proto::Bursts {
                state: state(bursts.state),
                percent: bursts.percent,
            })
            .collect(),
        timeline: timeline_least_ns.map_or(0, |least_ns| least_ns.saturating_add(1)),
    }
}

fn module_kind(kind: ModuleKind) -> proto::ModuleKind {
    match kind {
        ModuleKind::File => proto::ModuleKind::ModuleFile,
        ModuleKind::Vdso => proto::ModuleKind::ModuleVdso,
        ModuleKind::Jit => proto::ModuleKind::ModuleJit,
        ModuleKind::Kernel => proto::ModuleKind::ModuleKernel,
        ModuleKind::KernelModule => proto::ModuleKind::ModuleKernelModule,
        ModuleKind::Source => proto::ModuleKind::ModuleSource,
    }
}

fn waker(waker: &profile::Waker) -> proto::Waker {
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

pub(super) fn state(state: Option<State>) -> u32 {
    match state {
        None => 0,
        Some(State::Running) => 1,
        Some(State::Runnable) => 2,
        Some(State::Blocked) => 3,
    }
}

fn push(samples: &mut proto::Samples, sample: &Sample) {
    let ThreadId { pid, tid } = sample.thread.unwrap_or_default();
    let is_known = u32::from(sample.thread.is_some());
    samples.comms.push(number(sample.comm));
    samples.pids.push(pid);
    samples.tids.push(tid);
    samples.users.push(sample.stack.user.index() as u32);
    samples.kernels.push(sample.stack.kernel.index() as u32);
    let is_sampled = u32::from(sample.is_sampled);
    samples
        .states
        .push(state(sample.state) | is_known << 2 | is_sampled << 3);
    samples.chains.push(optional(sample.wakers));
}

fn process(process: &profile::Process) -> proto::Process {
    let profile::Process {
        pid,
        parent,
        start_ticks,
        executable,
        command_line,
        cgroup,
        is_kernel_thread,
    } = process.clone();
    proto::Process {
        pid,
        parent,
        start_ticks,
        executable: executable.into(),
        command_line: command_line.into_iter().map(String::from).collect(),
        cgroup: cgroup.into(),
        is_kernel_thread,
    }
}

fn thread(thread: &profile::Thread) -> proto::Thread {
    let profile::Thread { id, comm, clock } = *thread;
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
