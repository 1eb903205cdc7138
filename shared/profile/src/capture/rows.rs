//! From the records of a capture to a profile: every reference and length is checked.

use std::borrow::Cow;
use std::num::NonZeroU32;

use super::proto::{self, record::Kind};
use super::{Error, MOST_ROWS};
use crate::{
    Bursts, Clock, Ending, Frame, FrameKind, Function, Id, Label, Labels, Lengths, Losses, Meta,
    Module, ModuleKind, Name, Process, Profile, Rate, Sample, Sampling, Stack, StackId, State,
    Text, Thread, ThreadId, Unit, Waker, Wakers, WalkEnds, Weight, Window, marker, text,
};

/// Whether more records come.
pub(super) enum More {
    Records,
    None,
}

/// The rows so far. Those of the file are numbered as they come; equal ones, which no
/// writer of ours makes, are one in the profile.
pub(super) struct Rows {
    pub(super) profile: Profile,
    names: Vec<Name>,
    /// What they are as the names of threads, as far as they are any.
    threads: Vec<Option<Name>>,
    modules: Vec<Id<Module>>,
    functions: Vec<Id<Function>>,
    frames: Vec<Id<Frame>>,
    stacks: Vec<StackId>,
    wakers: Vec<Id<Wakers>>,
    labels: Vec<Id<Labels>>,
}

impl Default for Rows {
    fn default() -> Self {
        Rows {
            profile: Profile::new(Unit::Nanoseconds),
            names: Vec::new(),
            threads: Vec::new(),
            modules: Vec::new(),
            functions: Vec::new(),
            frames: Vec::new(),
            stacks: vec![StackId::EMPTY],
            wakers: Vec::new(),
            labels: Vec::new(),
        }
    }
}

impl Rows {
    /// Takes a record; whether more come.
    pub(super) fn take(&mut self, record: proto::Record) -> Result<More, Error> {
        match record.kind {
            Some(Kind::Meta(meta)) => self.take_meta(meta)?,
            Some(Kind::Names(names)) => {
                room(self.names.len(), names.names.len())?;
                for name in &names.names {
                    self.names.push(self.profile.names.text(name));
                }
                self.threads.resize(self.names.len(), None);
            }
            Some(Kind::Modules(modules)) => {
                room(self.modules.len(), modules.modules.len())?;
                for module in modules.modules {
                    let module = self.module(&module)?;
                    self.modules.push(self.profile.modules.id(module));
                }
            }
            Some(Kind::Functions(functions)) => {
                room(self.functions.len(), functions.functions.len())?;
                for function in functions.functions {
                    let function = self.function(&function)?;
                    self.functions.push(self.profile.functions.id(function));
                }
            }
            Some(Kind::Frames(frames)) => {
                room(self.frames.len(), frames.frames.len())?;
                for frame in frames.frames {
                    let frame = self.frame(&frame)?;
                    self.frames.push(self.profile.frames.id(frame));
                }
            }
            Some(Kind::Stacks(stacks)) => self.take_stacks(&stacks)?,
            Some(Kind::Wakers(wakers)) => {
                room(self.wakers.len(), wakers.chains.len())?;
                for chain in wakers.chains {
                    let wakers = chain.wakers.iter().map(|waker| self.waker(waker));
                    let wakers = wakers.collect::<Result<Wakers, Error>>()?;
                    self.wakers.push(self.profile.wakers.id(wakers));
                }
            }
            Some(Kind::Labels(labels)) => {
                room(self.labels.len(), labels.sets.len())?;
                for set in labels.sets {
                    let labels = self.label_set(&set)?;
                    self.labels.push(self.profile.labels.id(labels));
                }
            }
            Some(Kind::Samples(samples)) => self.take_samples(&samples)?,
            Some(Kind::Threads(threads)) => {
                room(self.profile.threads.len(), threads.threads.len())?;
                for thread in threads.threads {
                    let thread = self.thread(&thread)?;
                    self.profile.threads.push(thread);
                }
            }
            Some(Kind::Processes(processes)) => {
                room(self.profile.processes.len(), processes.processes.len())?;
                let processes = processes.processes.into_iter().map(process);
                self.profile.processes.extend(processes);
            }
            Some(Kind::End(end)) => {
                let losses = end.losses.unwrap_or_default();
                self.profile.walk_ends = walk_ends(end.walk_ends.unwrap_or_default());
                self.profile.losses = Losses {
                    events: losses.events,
                    stacks: losses.stacks,
                    threads: losses.threads,
                    incomplete_user: losses.incomplete_user,
                };
                return Ok(More::None);
            }
            // Of a later writer.
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

    /// The name of a thread: it does not read as one of ours.
    fn thread_name(&mut self, number: u32) -> Result<Name, Error> {
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
        let kind = match frame.kind() {
            proto::FrameKind::FrameUser => FrameKind::User,
            proto::FrameKind::FrameKernel => FrameKind::Kernel,
            proto::FrameKind::FrameMarker => FrameKind::Marker,
            proto::FrameKind::FramePython => FrameKind::Python,
            proto::FrameKind::FrameUnknown => {
                return Err(Error::Damaged("a frame is of no kind"));
            }
        };
        Ok(Frame {
            name: row(&self.names, frame.name)?,
            kind,
            module: optional(&self.modules, frame.module)?,
            address: frame.address,
            function: optional(&self.functions, frame.function)?,
            offset: frame.offset,
            is_inlined: frame.is_inlined,
            line: NonZeroU32::new(frame.line),
        })
    }

    fn take_stacks(&mut self, stacks: &proto::Stacks) -> Result<(), Error> {
        let proto::Stacks { callers, leaves } = stacks;
        same_length(callers.len(), [leaves.len()])?;
        room(self.stacks.len(), callers.len())?;
        for (&callers, &leaf) in callers.iter().zip(leaves) {
            let callers = row(&self.stacks, callers)?;
            let leaf = row(&self.frames, leaf)?;
            self.stacks.push(self.profile.stacks.called(callers, leaf));
        }
        Ok(())
    }

    fn stack(&self, user: u32, kernel: u32) -> Result<Stack, Error> {
        Ok(Stack {
            user: row(&self.stacks, user)?,
            kernel: row(&self.stacks, kernel)?,
        })
    }

    fn waker(&mut self, waker: &proto::Waker) -> Result<Waker, Error> {
        let (pid, tid) = (waker.pid, waker.tid);
        Ok(Waker {
            comm: match row(&self.names, waker.comm)? {
                name if !waker.is_thread && marker::is_waker(&self.profile.names[name]) => name,
                _ => self.thread_name(waker.comm)?,
            },
            thread: waker.is_thread.then_some(ThreadId { pid, tid }),
            stack: self.stack(waker.user, waker.kernel)?,
        })
    }

    fn label_set(&self, set: &proto::LabelSet) -> Result<Labels, Error> {
        same_length(set.keys.len(), [set.values.len()])?;
        let labels = set.keys.iter().zip(&set.values);
        let labels = labels.map(|(&key, &value)| {
            Ok(Label {
                key: row(&self.names, key)?,
                value: row(&self.names, value)?,
            })
        });
        labels.collect()
    }

    fn take_samples(&mut self, samples: &proto::Samples) -> Result<(), Error> {
        let count = samples.comms.len();
        let columns = [
            &samples.pids,
            &samples.tids,
            &samples.users,
            &samples.kernels,
        ];
        same_length(count, columns.map(Vec::len))?;
        same_length(count, [samples.states.len(), samples.chains.len()])?;
        if !samples.labels.is_empty() {
            same_length(count, [samples.labels.len()])?;
        }
        let lengths = [&samples.longest, &samples.shortest, &samples.squares];
        let weights = [&samples.values, &samples.events];
        same_length(count, lengths.map(Vec::len))?;
        same_length(count, weights.map(Vec::len))?;
        room(self.profile.samples.len(), count)?;
        for index in 0..count {
            let thread = ThreadId {
                pid: samples.pids[index],
                tid: samples.tids[index],
            };
            let bits = samples.states[index];
            let wakers = optional(&self.wakers, samples.chains[index])?;
            let sample = Sample {
                comm: self.thread_name(samples.comms[index])?,
                thread: (bits & 4 != 0).then_some(thread),
                stack: self.stack(samples.users[index], samples.kernels[index])?,
                state: state(bits),
                wakers,
                labels: match samples.labels.get(index) {
                    Some(&labels) => optional(&self.labels, labels)?,
                    None => None,
                },
            };
            let weight = Weight {
                value: samples.values[index],
                events: samples.events[index],
                longest: samples.longest[index],
                shortest: samples.shortest[index],
                squares: samples.squares[index],
            };
            self.profile.add(sample, weight);
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

fn state(number: u32) -> Option<State> {
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
    }
}

/// The row that a number counted from 1 stands for; none for 0.
fn optional<Id: Copy>(rows: &[Id], number: u32) -> Result<Option<Id>, Error> {
    let number = number.checked_sub(1);
    number.map(|number| row(rows, number)).transpose()
}

/// The row that a number stands for.
fn row<Id: Copy>(rows: &[Id], number: u32) -> Result<Id, Error> {
    let id = rows.get(number as usize).copied();
    id.ok_or(Error::Damaged("it refers to what is not there"))
}

fn room(rows: usize, more: usize) -> Result<(), Error> {
    match rows.saturating_add(more) > MOST_ROWS {
        true => Err(Error::Damaged("it has too many rows")),
        false => Ok(()),
    }
}

fn same_length<const N: usize>(count: usize, columns: [usize; N]) -> Result<(), Error> {
    match columns.iter().all(|&column| column == count) {
        true => Ok(()),
        false => Err(Error::Damaged("columns differ in length")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_the_most_rows_and_no_more() {
        assert!(room(MOST_ROWS - 1, 1).is_ok() && room(0, MOST_ROWS).is_ok());
        for (rows, more) in [(MOST_ROWS, 1), (1, MOST_ROWS), (1, usize::MAX)] {
            assert!(room(rows, more).is_err());
        }
    }
}
