//! Debian's python3, measured by a program that also sends every stack as a dump.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use collect::{CallGraph, Detail, Languages, Sources, StackChoice, Walking};
use loader::{Kernel, LoadedObject, OpenObject, Targets};

/// User stacks, unwound with tables where there are tables.
const STACKS: StackChoice = StackChoice {
    user: true,
    kernel: false,
    walking: Walking {
        call_graph: CallGraph::Auto,
        max_stack: Walking::MAX_FRAMES,
        languages: Languages::Known,
        shows_runtime: false,
    },
    per_thread: false,
    per_process: false,
    detail: Detail::Names,
    sources: Sources::None,
    objects: false,
    thread_names: None,
    timeline_least_ns: None,
    recorder: None,
};

/// Process of python3 that runs until it is dropped.
pub(crate) struct Python(Child);

impl Python {
    /// Starts python3, and waits for the line that it prints when everything is loaded.
    pub(crate) fn start(script: &str) -> Python {
        let mut command = Command::new("python3");
        command.args(["-c", script]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3");
        let stdout = child.stdout.take().expect("its output");
        let mut said = String::new();
        BufReader::new(stdout).read_line(&mut said).expect("a line");
        assert_eq!(said, "ready\n");
        Python(child)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Returns targets with this process only.
    pub(crate) fn targets(&self) -> Targets {
        Targets::new(vec![self.pid()], vec![])
    }

    /// Loads an object that checks the user stacks of this process.
    pub(crate) fn load(&self, object: &bpf::Object) -> LoadedObject {
        let kernel = Kernel::probe().expect("the kernel's BTF");
        let targets = self.targets();
        let mut object = OpenObject::new(object).expect("an object");
        let configured = targets
            .configure(&mut object, &kernel)
            .and_then(|()| STACKS.configure(&mut object))
            .and_then(|()| object.set(bpf::constants::DUMP_EVERY_STACK, true));
        configured.expect("constants");
        let object = object.load().expect("load, as root");
        targets.fill(&object, &kernel).expect("targets");
        object
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
