//! Turns the records of a capture into a profile, and checks every reference and length.

use std::borrow::Cow;
use std::num::NonZeroU32;

use super::budget::Budget;
use super::kinds;
use super::proto::{self, record::Kind};
use super::waits::LabelMeaning;
use super::{Error, MAX_DEPTH, times};
use profile::{
    Bursts, Clock, Ending, Frame, Function, Id, Label, Labels, Lengths, Losses, Meta, Module,
    ModuleKind, Name, Process, Profile, Rate, Resource, Sample, Sampling, Stack, StackId, State,
    Text, Thread, ThreadId, Unit, Wait, Waker, Wakers, WalkEnds, Weight, Window, marker, text,
};

/// Continuation of a capture after a record: more records, or none.
pub(super) enum More {
    Records,
    None,
}

/// Rows read so far, by their numbers in the file. Equal rows of a file, which our writer never
/// makes, become one row of the profile.
pub(super) struct Rows {
    version: u8,
    pub(super) profile: Profile,
    pub(super) names: Vec<Name>,
    /// The names cleaned as names of threads; `None` until a thread uses the name.
    threads: Vec<Option<Name>>,
    modules: Vec<Id<Module>>,
    functions: Vec<Id<Function>>,
    frames: Vec<Id<Frame>>,
    stacks: Vec<Known<StackId>>,
    pub(super) wakers: Vec<Known<Id<Wakers>>>,
    pub(super) resources: Vec<Known<Id<Resource>>>,
    pub(super) waits: Vec<Known<Id<Wait>>>,
    labels: Vec<Known<LabelMeaning>>,
    samples: Vec<Id<Sample>>,
    keyed: times::Keyed,
}

/// A row, with its size as text in an output format.
#[derive(Clone, Copy)]
pub(super) struct Known<Row> {
    pub(super) row: Row,
    /// Bytes of text.
    pub(super) text: u64,
    /// Number of frames; 0 unless the row is a stack.
    pub(super) depth: u32,
}

/// Bytes that a frame takes besides its name: an address or a separator.
pub(super) const FRAME_BYTES: u64 = 16;

impl Rows {
    /// Returns the rows of an empty capture of this version.
    pub(super) fn new(version: u8) -> Rows {
        Rows {
            version,
            profile: Profile::new(Unit::Nanoseconds),
            names: Vec::new(),
            threads: Vec::new(),
            modules: Vec::new(),
            functions: Vec::new(),
            frames: Vec::new(),
            stacks: vec![Known {
                row: StackId::EMPTY,
                text: 0,
                depth: 0,
            }],
            wakers: Vec::new(),
            resources: Vec::new(),
            waits: Vec::new(),
            labels: Vec::new(),
            samples: Vec::new(),
            keyed: times::Keyed::default(),
        }
    }

    /// Adds a record, and returns whether more records follow.
    pub(super) fn take(
        &mut self,
        record: proto::Record,
        budget: &mut Budget<'_>,
    ) -> Result<More, Error> {
        match record.kind {
            Some(Kind::Meta(meta)) => self.take_meta(meta)?,
            Some(Kind::Names(proto::Names { names })) => {
                budget.take_rows::<Box<str>>(names.len(), names.iter().map(String::len).sum())?;
                for name in &names {
                    self.names.push(self.profile.names.text(name));
                }
                self.threads.resize(self.names.len(), None);
            }
            Some(Kind::Modules(proto::Modules { modules })) => {
                budget.take_rows::<Module>(modules.len(), 0)?;
                for module in modules {
                    let module = self.module(&module)?;
                    budget.take_rows::<()>(0, self.name_length(module.path))?;
                    self.modules.push(self.profile.modules.id(module));
                }
            }
            Some(Kind::Functions(proto::Functions { functions })) => {
                budget.take_rows::<Function>(functions.len(), 0)?;
                for function in functions {
                    let function = self.function(&function)?;
                    self.functions.push(self.profile.functions.id(function));
                }
            }
            Some(Kind::Frames(proto::Frames { frames })) => {
                budget.take_rows::<Frame>(frames.len(), 0)?;
                for frame in frames {
                    let frame = self.frame(&frame)?;
                    // Formats write each frame with its name and its files.
                    let function = frame.function.map(|id| &self.profile.functions[id]);
                    let file = function.and_then(|function| function.file);
                    let names = [Some(frame.name), file, self.path(&frame)];
                    let names = names.into_iter().flatten();
                    let texts = names.map(|name| self.name_length(name)).sum();
                    budget.take_rows::<()>(0, texts)?;
                    self.frames.push(self.profile.frames.id(frame));
                }
            }
            Some(Kind::Stacks(stacks)) => self.take_stacks(&stacks, budget)?,
            Some(Kind::Wakers(proto::Wakers { chains })) => {
                let wakers = chains.iter().map(|chain| chain.wakers.len()).sum();
                budget.take_rows::<Wakers>(chains.len(), 0)?;
                budget.take_rows::<Waker>(wakers, 0)?;
                for chain in chains {
                    self.take_chain(&chain)?;
                }
            }
            Some(Kind::Labels(proto::Labels { sets })) => {
                let labels = sets.iter().map(|set| set.keys.len()).sum();
                budget.take_rows::<Labels>(sets.len(), 0)?;
                budget.take_rows::<Label>(labels, 0)?;
                for set in sets {
                    self.take_label_set(&set)?;
                }
            }
            Some(Kind::Resources(proto::Resources { resources })) => {
                self.take_resources(&resources, budget)?;
            }
            Some(Kind::Waits(proto::Waits { waits })) => self.take_waits(&waits, budget)?,
            Some(Kind::Samples(samples)) => self.take_samples(&samples, budget)?,
            Some(Kind::Threads(proto::Threads { threads })) => {
                budget.take_rows::<Thread>(threads.len(), 0)?;
                for thread in threads {
                    let thread = self.thread(&thread)?;
                    budget.take_rows::<()>(0, self.name_length(thread.comm))?;
                    let clock = thread.clock;
                    budget.take_counts([
                        clock.lifetime_ns(),
                        clock.running_ns,
                        clock.runnable_ns,
                        clock.blocked_ns,
                        clock.voluntary,
                        clock.involuntary,
                    ])?;
                    self.profile.threads.push(thread);
                }
            }
            Some(Kind::Processes(proto::Processes { processes })) => {
                budget.take_rows::<Process>(processes.len(), 0)?;
                for process in &processes {
                    let words = &process.command_line;
                    let texts = words.iter().chain([&process.executable, &process.cgroup]);
                    budget.take_rows::<String>(words.len(), texts.map(String::len).sum())?;
                }
                let processes = processes.into_iter().map(process);
                self.profile.processes.extend(processes);
            }
            Some(Kind::Intervals(rows)) => {
                times::take_intervals(&mut self.profile, &rows, &self.samples, budget)?;
            }
            Some(Kind::TimedSamples(rows)) => {
                times::take_timed_samples(&mut self.profile, &rows, &self.samples, budget)?;
            }
            Some(Kind::ThreadEvents(rows)) => {
                times::take_thread_events(&mut self.profile, &rows, &self.names, budget)?;
            }
            Some(Kind::RequestSpans(rows)) => {
                times::take_request_spans(&mut self.profile, &rows, &self.names, budget)?;
            }
            Some(Kind::Lanes(rows)) => {
                self.keyed.take_lanes(&mut self.profile, &rows, budget)?;
            }
            Some(Kind::LaneSamples(rows)) => self.keyed.take_samples(&rows, budget)?,
            Some(Kind::LaneKeys(rows)) => {
                self.keyed.take_keys(&rows, &self.samples, budget)?;
            }
            Some(Kind::End(end)) => {
                self.keyed.settle(&mut self.profile)?;
                let losses = end.losses.unwrap_or_default();
                self.profile.walk_ends = walk_ends(end.walk_ends.unwrap_or_default());
                self.profile.losses = Losses {
                    events: losses.events,
                    stacks: losses.stacks,
                    threads: losses.threads,
                    incomplete_user: losses.incomplete_user,
                    times: losses.times,
                };
                return Ok(More::None);
            }
            // A later version wrote this record.
            None => {}
        }
        Ok(More::Records)
    }

    fn take_meta(&mut self, meta: proto::Meta) -> Result<(), Error> {
        self.profile.unit = match meta.unit() {
            proto::Unit::Samples => Unit::Samples,
            proto::Unit::Nanoseconds => Unit::Nanoseconds,
            proto::Unit::Unknown => return Err(Error::Damaged("its unit is unknown")),
        };
        let window = meta.window.unwrap_or_default();
        self.profile.meta = Meta {
            tool: meta.tool.into(),
            tool_version: meta.tool_version.into(),
            command_line: texts(meta.command_line),
            host: meta.host.into(),
            kernel: meta.kernel.into(),
            cpus: meta.cpus,
            window: Window {
                start_ns: window.start_ns,
                start_utc_ns: window.start_utc_ns,
                length_ns: window.length_ns,
                requested_ns: window.requested_ns,
                ending: match window.ending() {
                    proto::Ending::Elapsed => Ending::Elapsed,
                    proto::Ending::Interrupted => Ending::Interrupted,
                    proto::Ending::TargetGone => Ending::TargetGone,
                },
            },
            targets: meta.targets.into(),
            sampling: meta.sampling.map(|sampling| Sampling {
                event: sampling.event.into(),
                rate: match sampling.frequency {
                    0 => Rate::Period(sampling.period),
                    frequency => Rate::Frequency(frequency),
                },
            }),
            lengths: meta.lengths.map(|lengths| Lengths {
                least: lengths.least,
                most: lengths.most,
                short_are_sampled: lengths.short_are_sampled,
            }),
            bursts: (meta.bursts.iter())
                .map(|bursts| Bursts {
                    state: state(bursts.state),
                    percent: bursts.percent,
                })
                .collect(),
            timeline_least_ns: meta.timeline.checked_sub(1),
        };
        Ok(())
    }

    fn module(&self, module: &proto::Module) -> Result<Module, Error> {
        let kind = match module.kind() {
            proto::ModuleKind::ModuleFile => ModuleKind::File,
            proto::ModuleKind::ModuleVdso => ModuleKind::Vdso,
            proto::ModuleKind::ModuleJit => ModuleKind::Jit,
            proto::ModuleKind::ModuleKernel => ModuleKind::Kernel,
            proto::ModuleKind::ModuleKernelModule => ModuleKind::KernelModule,
            proto::ModuleKind::ModuleSource => ModuleKind::Source,
            proto::ModuleKind::ModuleUnknown => {
                return Err(Error::Damaged("a module is of no kind"));
            }
        };
        Ok(Module {
            path: row(&self.names, module.path)?,
            build_id: optional(&self.names, module.build_id)?,
            kind,
        })
    }

    fn function(&self, function: &proto::Function) -> Result<Function, Error> {
        Ok(Function {
            name: row(&self.names, function.name)?,
            system_name: optional(&self.names, function.system_name)?,
            file: optional(&self.names, function.file)?,
            line: NonZeroU32::new(function.line),
        })
    }

    /// Returns the name of a thread. A name that reads as a marker is changed.
    pub(super) fn thread_name(&mut self, number: u32) -> Result<Name, Error> {
        let name = row(&self.names, number)?;
        let known = &mut self.threads[number as usize];
        if let Some(known) = known {
            return Ok(*known);
        }
        let names = &mut self.profile.names;
        let thread = match &*names[name] {
            marker::UNNAMED | "" => names.text(marker::UNNAMED),
            text => match text::thread(text) {
                Cow::Borrowed(_) => name,
                Cow::Owned(distinct) => names.text(&distinct),
            },
        };
        Ok(*known.insert(thread))
    }

    fn frame(&self, frame: &proto::Frame) -> Result<Frame, Error> {
        Ok(Frame {
            name: row(&self.names, frame.name)?,
            kind: kinds::from_capture(frame)?,
            module: optional(&self.modules, frame.module)?,
            address: frame.address,
            function: optional(&self.functions, frame.function)?,
            offset: frame.offset,
            is_inlined: frame.is_inlined,
            line: NonZeroU32::new(frame.line),
        })
    }

    fn take_stacks(
        &mut self,
        stacks: &proto::Stacks,
        budget: &mut Budget<'_>,
    ) -> Result<(), Error> {
        let proto::Stacks { callers, leaves } = stacks;
        same_length(callers.len(), [leaves.len()])?;
        budget.take_rows::<Known<StackId>>(callers.len(), 0)?;
        for (&callers, &leaf) in callers.iter().zip(leaves) {
            let callers = row(&self.stacks, callers)?;
            let leaf = row(&self.frames, leaf)?;
            let depth = callers.depth + 1;
            if depth as usize > MAX_DEPTH {
                return Err(Error::Damaged("a stack is deeper than any recorder writes"));
            }
            let frame = &self.profile.frames[leaf];
            // Only `perf-script` writes paths beside names. A path counts for a quarter of its
            // length, because paths are longer than names and few captures become `perf-script`.
            let path = self.path(frame).map_or(0, |path| self.name_length(path));
            let text = self.name_length(frame.name) + path / 4;
            self.stacks.push(Known {
                row: self.profile.stacks.called(callers.row, leaf),
                text: callers.text + FRAME_BYTES + text as u64,
                depth,
            });
        }
        Ok(())
    }

    fn path(&self, frame: &Frame) -> Option<Name> {
        frame.module.map(|module| self.profile.modules[module].path)
    }

    /// Returns the name of a waker: a thread's name, or a marker for wakers.
    fn waker_name(&mut self, waker: &proto::Waker) -> Result<Name, Error> {
        match row(&self.names, waker.comm)? {
            name if !waker.is_thread && marker::is_waker(&self.profile.names[name]) => Ok(name),
            _ => self.thread_name(waker.comm),
        }
    }

    pub(super) fn name_length(&self, name: Name) -> usize {
        self.profile.names[name].len()
    }

    /// Returns a stack and the bytes of its text.
    fn stack(&self, user: u32, kernel: u32) -> Result<(Stack, u64), Error> {
        let [user, kernel] = [row(&self.stacks, user)?, row(&self.stacks, kernel)?];
        let stack = Stack {
            user: user.row,
            kernel: kernel.row,
        };
        Ok((stack, user.text + kernel.text))
    }

    fn take_chain(&mut self, chain: &proto::Chain) -> Result<(), Error> {
        let mut text = 0_u64;
        let mut wakers = Vec::with_capacity(chain.wakers.len());
        for waker in &chain.wakers {
            let (pid, tid) = (waker.pid, waker.tid);
            let comm = self.waker_name(waker)?;
            let (stack, stack_text) = self.stack(waker.user, waker.kernel)?;
            let own = FRAME_BYTES + self.name_length(comm) as u64;
            text = text.saturating_add(stack_text).saturating_add(own);
            wakers.push(Waker {
                comm,
                thread: waker.is_thread.then_some(ThreadId { pid, tid }),
                stack,
            });
        }
        let wakers: Wakers = wakers.into();
        self.wakers.push(Known {
            row: self.profile.wakers.id(wakers),
            text,
            depth: 0,
        });
        Ok(())
    }

    fn take_label_set(&mut self, set: &proto::LabelSet) -> Result<(), Error> {
        same_length(set.keys.len(), [set.values.len()])?;
        let mut text = 0_u64;
        let labels = set.keys.iter().zip(&set.values);
        let labels = labels.map(|(&key, &value)| {
            let [key, value] = [row(&self.names, key)?, row(&self.names, value)?];
            let names = self.name_length(key) + self.name_length(value);
            text = text.saturating_add(FRAME_BYTES + names as u64);
            Ok(Label { key, value })
        });
        let labels = labels.collect::<Result<Vec<Label>, Error>>()?;
        let meaning = if self.version == 1 {
            self.interpret_labels(labels)
        } else {
            LabelMeaning {
                labels: Some(self.profile.labels.id(labels.into())),
                ..LabelMeaning::default()
            }
        };
        self.labels.push(Known {
            row: meaning,
            text,
            depth: 0,
        });
        Ok(())
    }

    fn take_samples(
        &mut self,
        samples: &proto::Samples,
        budget: &mut Budget<'_>,
    ) -> Result<(), Error> {
        let count = samples.comms.len();
        let columns = [
            &samples.pids,
            &samples.tids,
            &samples.users,
            &samples.kernels,
        ];
        same_length(count, columns.map(Vec::len))?;
        same_length(count, [samples.states.len(), samples.chains.len()])?;
        for column in [&samples.labels, &samples.waits] {
            if !column.is_empty() {
                same_length(count, [column.len()])?;
            }
        }
        let lengths = [&samples.longest, &samples.shortest, &samples.squares];
        let weights = [&samples.values, &samples.events];
        same_length(count, lengths.map(Vec::len))?;
        same_length(count, weights.map(Vec::len))?;
        budget.take_rows::<(Sample, Weight)>(count, 0)?;
        for index in 0..count {
            let thread = ThreadId {
                pid: samples.pids[index],
                tid: samples.tids[index],
            };
            let bits = samples.states[index];
            let comm = self.thread_name(samples.comms[index])?;
            let (stack, stack_text) = self.stack(samples.users[index], samples.kernels[index])?;
            let wakers = optional(&self.wakers, samples.chains[index])?;
            let labels = samples.labels.get(index).copied().unwrap_or(0);
            let labels = optional(&self.labels, labels)?;
            let meaning = labels.map(|labels| labels.row).unwrap_or_default();
            let wait = samples.waits.get(index).copied().unwrap_or(0);
            let wait = optional(&self.waits, wait)?;
            let texts = [
                FRAME_BYTES + self.name_length(comm) as u64,
                stack_text,
                wakers.map_or(0, |wakers| wakers.text),
                labels.map_or(0, |labels| labels.text),
                wait.map_or(0, |wait| wait.text),
            ];
            budget.take_written(texts.into_iter().fold(0, u64::saturating_add))?;
            let sample = Sample {
                state: state(bits),
                wakers: wakers.map(|wakers| wakers.row),
                wait: wait.map(|wait| wait.row).or(meaning.wait),
                is_sampled: meaning.is_sampled || bits & 8 != 0,
                labels: meaning.labels,
                ..Sample::new(comm, (bits & 4 != 0).then_some(thread), stack)
            };
            let weight = Weight {
                value: samples.values[index],
                events: samples.events[index],
                longest: samples.longest[index],
                shortest: samples.shortest[index],
                squares: samples.squares[index],
            };
            budget.take_counts([weight.value, weight.events])?;
            self.samples.push(self.profile.add(sample, weight));
        }
        Ok(())
    }

    fn thread(&mut self, thread: &proto::Thread) -> Result<Thread, Error> {
        Ok(Thread {
            id: ThreadId {
                pid: thread.pid,
                tid: thread.tid,
            },
            comm: self.thread_name(thread.comm)?,
            clock: Clock {
                started_ns: thread.started_ns,
                ended_ns: thread.ended_ns,
                running_ns: thread.running_ns,
                runnable_ns: thread.runnable_ns,
                blocked_ns: thread.blocked_ns,
                voluntary: thread.voluntary,
                involuntary: thread.involuntary,
            },
        })
    }
}

pub(super) fn state(number: u32) -> Option<State> {
    match number & 3 {
        0 => None,
        1 => Some(State::Running),
        2 => Some(State::Runnable),
        _ => Some(State::Blocked),
    }
}

fn texts(texts: Vec<String>) -> Vec<Text> {
    texts.into_iter().map(Text::from).collect()
}

fn process(process: proto::Process) -> Process {
    Process {
        pid: process.pid,
        parent: process.parent,
        start_ticks: process.start_ticks,
        executable: process.executable.into(),
        command_line: texts(process.command_line),
        cgroup: process.cgroup.into(),
        is_kernel_thread: process.is_kernel_thread,
    }
}

fn walk_ends(ends: proto::WalkEnds) -> WalkEnds {
    WalkEnds {
        root: ends.root,
        by_frame_pointer: ends.by_frame_pointer,
        no_mapping: ends.no_mapping,
        read_failed: ends.read_failed,
        too_deep: ends.too_deep,
        no_rule: ends.no_rule,
        code_32_bit: ends.code_32_bit,
    }
}

/// Returns the row with a number counted from 1, and `None` for 0.
pub(super) fn optional<Id: Copy>(rows: &[Id], number: u32) -> Result<Option<Id>, Error> {
    let number = number.checked_sub(1);
    number.map(|number| row(rows, number)).transpose()
}

/// Returns the row with a number counted from 0.
pub(super) fn row<Id: Copy>(rows: &[Id], number: u32) -> Result<Id, Error> {
    let id = rows.get(number as usize).copied();
    id.ok_or(Error::Damaged("it refers to what is not there"))
}

pub(super) fn same_length<const N: usize>(count: usize, columns: [usize; N]) -> Result<(), Error> {
    if columns.iter().all(|&column| column == count) {
        Ok(())
    } else {
        Err(Error::Damaged("columns differ in length"))
    }
}
