//! Which stacks a tool was asked for.

use bpf::SharedConfig;

use crate::{CallGraph, UnwindMaps, Unwinder};

/// Which stacks are wanted, and of what.
#[derive(Clone, Copy, Debug)]
pub struct StackChoice {
    /// User stacks.
    pub user: bool,
    /// Kernel stacks.
    pub kernel: bool,
    /// How user stacks are walked.
    pub call_graph: CallGraph,
    /// Threads are told apart.
    pub per_thread: bool,
    /// Processes are told apart.
    pub per_process: bool,
}

impl StackChoice {
    /// Tells a program.
    pub fn configure(&self, config: &mut impl SharedConfig) {
        config.set_stacks(self.user, self.kernel);
        config.set_call_graph(self.call_graph.code());
        config.set_per_thread(self.per_thread);
    }

    /// What keeps the program's unwind tables, if the choice takes any.
    pub fn unwinder<'a, 'obj>(&self, maps: UnwindMaps<'a, 'obj>) -> Option<Unwinder<'a, 'obj>> {
        let unwinder = || Unwinder::new(self.call_graph, maps);
        self.user.then(unwinder).flatten()
    }
}
