//! Copies rows from one profile to another, and translates their numbers.

use crate::{
    Detail, EndedBy, Frame, Function, Holder, Id, Label, Labels, Module, Name, Profile, Resource,
    Sample, Stack, StackId, Thread, ThreadChange, ThreadEvent, Times, Wait, WaitKind, Waker,
    Wakers,
};

/// Numbers that the rows of one profile have in another.
pub struct Import {
    names: Vec<Name>,
    stacks: Vec<StackId>,
    wakers: Vec<Id<Wakers>>,
    waits: Vec<Id<Wait>>,
    labels: Vec<Id<Labels>>,
}

impl Import {
    /// Adds all rows of `from` that samples and threads refer to.
    pub fn new(into: &mut Profile, from: &Profile) -> Import {
        let names = from.names.iter().map(|name| into.names.text(name));
        let mut import = Import {
            names: names.collect(),
            stacks: vec![StackId::EMPTY],
            wakers: Vec::new(),
            waits: Vec::new(),
            labels: Vec::new(),
        };
        let modules = from.modules.iter().map(|module| {
            into.modules.id(Module {
                path: import.name(module.path),
                build_id: module.build_id.map(|build_id| import.name(build_id)),
                kind: module.kind,
            })
        });
        let modules: Vec<Id<Module>> = modules.collect();
        let functions = from.functions.iter().map(|function| {
            into.functions.id(Function {
                name: import.name(function.name),
                system_name: function.system_name.map(|name| import.name(name)),
                file: function.file.map(|file| import.name(file)),
                line: function.line,
            })
        });
        let functions: Vec<Id<Function>> = functions.collect();
        let frames = from.frames.iter().map(|frame| {
            let frame = Frame {
                name: import.name(frame.name),
                module: frame.module.map(|module| modules[module.index()]),
                function: frame.function.map(|function| functions[function.index()]),
                ..*frame
            };
            into.frames.id(frame)
        });
        let frames: Vec<Id<Frame>> = frames.collect();
        for (callers, leaf) in from.stacks.nodes() {
            let callers = import.stacks[callers.index()];
            let stack = into.stacks.called(callers, frames[leaf.index()]);
            import.stacks.push(stack);
        }
        let wakers = from.wakers.iter().map(|wakers| {
            let wakers = wakers.iter().map(|waker| Waker {
                comm: import.name(waker.comm),
                stack: import.stack(waker.stack),
                ..*waker
            });
            into.wakers.id(wakers.collect())
        });
        import.wakers = wakers.collect();
        let resources = from.resources.iter();
        let resources =
            resources.map(|resource| into.resources.id(resource.map(|name| import.name(*name))));
        let resources: Vec<Id<Resource>> = resources.collect();
        let waits = from.waits.iter();
        let waits = waits.map(|wait| into.waits.id(import.wait(wait, &resources)));
        import.waits = waits.collect();
        let labels = from.labels.iter().map(|labels| {
            let labels = labels.iter().map(|label| Label {
                key: import.name(label.key),
                value: import.name(label.value),
            });
            into.labels.id(labels.collect())
        });
        import.labels = labels.collect();
        import
    }

    fn name(&self, name: Name) -> Name {
        self.names[name.index()]
    }

    fn wait(&self, wait: &Wait, resources: &[Id<Resource>]) -> Wait {
        let detail = match wait.kind.detail {
            Detail::Named(name) => Detail::Named(self.name(name)),
            known => known,
        };
        Wait {
            kind: WaitKind::new(wait.kind.reason, detail),
            resource: wait.resource.map(|id| resources[id.index()]),
            holder: wait.holder.map(|holder| Holder {
                comm: self.name(holder.comm),
                ..holder
            }),
            ended_by: wait.ended_by.map(|ended_by| match ended_by {
                EndedBy::Wakers(wakers) => EndedBy::Wakers(self.wakers[wakers.index()]),
                EndedBy::Described(name) => EndedBy::Described(self.name(name)),
            }),
            idleness: wait.idleness,
        }
    }

    fn stack(&self, stack: Stack) -> Stack {
        Stack {
            user: self.stacks[stack.user.index()],
            kernel: self.stacks[stack.kernel.index()],
        }
    }

    /// Translates a sample of the other profile.
    #[must_use]
    pub fn sample(&self, sample: Sample) -> Sample {
        Sample {
            comm: self.name(sample.comm),
            stack: self.stack(sample.stack),
            wakers: sample.wakers.map(|wakers| self.wakers[wakers.index()]),
            wait: sample.wait.map(|wait| self.waits[wait.index()]),
            labels: sample.labels.map(|labels| self.labels[labels.index()]),
            ..sample
        }
    }

    /// Adds the rows of time of the other profile. `sample` returns the number that a sample of
    /// the other profile has here. A row is dropped if its sample has no number.
    pub(crate) fn add_times(
        &self,
        into: &mut Times,
        from: &Times,
        mut sample: impl FnMut(Id<Sample>) -> Option<Id<Sample>>,
    ) {
        let mut times = from.clone();
        times.renumber_samples(&mut sample);
        into.intervals.extend(times.intervals);
        into.timed_samples.extend(times.timed_samples);
        let name = |name| self.name(name);
        let events = times.thread_events.iter();
        into.thread_events.extend(events.map(|event| ThreadEvent {
            change: match event.change {
                ThreadChange::Executed(comm) => ThreadChange::Executed(name(comm)),
                ThreadChange::Renamed(comm) => ThreadChange::Renamed(name(comm)),
                change => change,
            },
            ..*event
        }));
        into.request_spans.extend(&times.request_spans, name);
    }

    /// Translates a thread of the other profile.
    #[must_use]
    pub fn thread(&self, thread: Thread) -> Thread {
        Thread {
            comm: self.name(thread.comm),
            ..thread
        }
    }
}
