//! What one profile says, in the numbers of another.

use crate::{
    Frame, Function, Id, Label, Labels, Module, Name, Profile, Sample, Stack, StackId, Thread,
    Waker, Wakers,
};

/// The numbers that another profile's rows have here.
pub struct Import {
    names: Vec<Name>,
    stacks: Vec<StackId>,
    wakers: Vec<Id<Wakers>>,
    labels: Vec<Id<Labels>>,
}

impl Import {
    /// Adds what `from`'s samples and threads refer to.
    pub fn new(into: &mut Profile, from: &Profile) -> Import {
        let names = from.names.iter().map(|name| into.names.text(name));
        let mut import = Import {
            names: names.collect(),
            stacks: vec![StackId::EMPTY],
            wakers: Vec::new(),
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

    fn stack(&self, stack: Stack) -> Stack {
        Stack {
            user: self.stacks[stack.user.index()],
            kernel: self.stacks[stack.kernel.index()],
        }
    }

    /// A sample of the other profile.
    #[must_use]
    pub fn sample(&self, sample: Sample) -> Sample {
        Sample {
            comm: self.name(sample.comm),
            stack: self.stack(sample.stack),
            wakers: sample.wakers.map(|wakers| self.wakers[wakers.index()]),
            labels: sample.labels.map(|labels| self.labels[labels.index()]),
            ..sample
        }
    }

    /// A thread of the other profile.
    #[must_use]
    pub fn thread(&self, thread: Thread) -> Thread {
        Thread {
            comm: self.name(thread.comm),
            ..thread
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::{FrameKind, ModuleKind, Unit, folded};

    #[test]
    fn it_reads_as_before() {
        let read = |text: &str| folded::read(text.as_bytes(), Unit::Samples, true).unwrap();
        // Whose waker is where the other's is there.
        let mut into = read("a-1/2;main;f;-;wait_[o];--;f;main;d-7/8 1\n");
        let from = read("b-3/4;main;f;g;-;wait_[o];--;wake;main;c-5/6 2\n");
        let import = Import::new(&mut into, &from);
        let (sample, value) = from.values().next().unwrap();
        let sample = import.sample(sample);
        assert_eq!((&*into.names[sample.comm], value), ("b", 2));
        assert_eq!(sample.thread.unwrap().tid, 4);
        let names = |stack| -> Vec<&str> {
            let frames = into.frames_of(stack);
            frames.map(|frame| into.name(frame)).collect()
        };
        assert_eq!(names(sample.stack.user), ["main", "f", "g"]);
        assert_eq!(names(sample.stack.kernel), ["wait"]);
        let [waker] = &*into.wakers[sample.wakers.unwrap()] else {
            unreachable!("one waker")
        };
        assert_eq!(&*into.names[waker.comm], "c");
        assert_eq!(names(waker.stack.user), ["main", "wake"]);
        // The empty one, main, main;f, wait; main;f;g, main;wake.
        assert_eq!(into.stacks.len(), 6);
    }

    #[test]
    fn what_frames_and_samples_refer_to_comes_along() {
        let read = |text: &str| folded::read(text.as_bytes(), Unit::Samples, true).unwrap();
        // Numbers differ there.
        let mut into = read("libc-1/2;main 1\n");
        let libc = into.names.text("libc");
        let label = Label {
            key: libc,
            value: libc,
        };
        into.labels.id([label].into());
        let mut from = read("b-3/4;main 2\n");
        let mut name = |text: &str| from.names.text(text);
        let [path, build_id, demangled, mangled, file] =
            ["/lib/libc.so", "ab", "f()", "_Z1fv", "f.cc"].map(&mut name);
        let [key, value] = ["reason", "lock"].map(&mut name);
        let module = from.modules.id(Module {
            path,
            build_id: Some(build_id),
            kind: ModuleKind::File,
        });
        let function = from.functions.id(Function {
            name: demangled,
            system_name: Some(mangled),
            file: Some(file),
            line: NonZeroU32::new(3),
        });
        let frame = from.frames.id(Frame {
            module: Some(module),
            address: Some(0x10),
            function: Some(function),
            line: NonZeroU32::new(4),
            ..Frame::named(demangled, FrameKind::User)
        });
        let (mut sample, _) = from.values().next().unwrap();
        sample.stack.user = from.stacks.called(sample.stack.user, frame);
        sample.labels = Some(from.labels.id([Label { key, value }].into()));

        let import = Import::new(&mut into, &from);
        let sample = import.sample(sample);
        let frame = *into.frames_of(sample.stack.user).next_back().unwrap();
        let text = |name: Name| &*into.names[name];
        assert_eq!((text(frame.name), frame.address), ("f()", Some(0x10)));
        assert_eq!(frame.line, NonZeroU32::new(4));
        let module = &into.modules[frame.module.unwrap()];
        assert_eq!(text(module.path), "/lib/libc.so");
        assert_eq!(module.build_id.map(text), Some("ab"));
        let function = into.functions[frame.function.unwrap()];
        let texts = [Some(function.name), function.system_name, function.file];
        let texts = texts.map(|name| name.map(text));
        assert_eq!(texts, [Some("f()"), Some("_Z1fv"), Some("f.cc")]);
        assert_eq!(function.line, NonZeroU32::new(3));
        let [label] = *into.labels[sample.labels.unwrap()] else {
            unreachable!("one label")
        };
        assert_eq!([label.key, label.value].map(text), ["reason", "lock"]);
    }
}
