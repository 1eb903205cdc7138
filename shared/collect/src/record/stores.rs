//! Stacks, wakers and resources that programs sent.

use bpf::types::StackKey;
use process::Process;
use profile::{Text, ThreadId};
use unwind_tables::MappedRuntime;
use waits::Objects;

use crate::record::StackChoice;
use crate::record::counts::Arrived;
use crate::record::runtime_names::RuntimeNames;
use crate::record::stacks::Stacks;
use crate::record::wakers::Wakers;

/// Stacks, wakers and resources, to which the keys of sums refer.
pub(crate) struct Stores {
    pub(crate) stacks: Stacks,
    pub(crate) wakers: Wakers,
    pub(crate) objects: Objects,
    pub(crate) names: RuntimeNames,
}

impl Stores {
    /// Returns empty stores.
    pub(crate) fn new(choice: &StackChoice) -> Stores {
        let mut stacks = Stacks::with_detail(choice.detail, choice.sources);
        stacks.set_unwind_mode(&choice.walking);
        Stores {
            stacks,
            wakers: Wakers::new(choice.per_process, choice.per_thread),
            objects: Objects::new(choice.per_thread),
            names: RuntimeNames::default(),
        }
    }

    /// Records the facts about a runtime that was found in a process.
    pub(crate) fn add_runtime(&mut self, process: Process, runtime: MappedRuntime) {
        self.names.add(process, &runtime);
        self.stacks.add_runtime(runtime);
    }

    /// Returns the name that a runtime has for the thread of a key, if it is known.
    pub(crate) fn own_name(&self, key: &StackKey) -> Option<&Text> {
        let StackKey { pid, tid, comm, .. } = key;
        let thread = ThreadId {
            pid: *pid,
            tid: *tid,
        };
        self.names.get(thread, comm)
    }

    /// Returns what has arrived.
    pub(crate) fn arrived(&self) -> Arrived<'_> {
        Arrived {
            stacks: &self.stacks,
            wakers: &self.wakers,
            objects: &self.objects,
            names: &self.names,
        }
    }
}
