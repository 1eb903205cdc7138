//! Which stacks a tool was asked for.

use loader::{Kernel, LoadedObject, OpenObject, Result};
use regex::Regex;
use symbolize::Sources;

use unwind_tables::{CallGraph, Unwinder, Walking, make_room_for_tables};

/// Which stacks are wanted, and of what.
#[derive(Clone, Debug)]
pub struct StackChoice {
    /// User stacks.
    pub user: bool,
    /// Kernel stacks.
    pub kernel: bool,
    /// How user stacks are walked.
    pub walking: Walking,
    /// Threads are told apart.
    pub per_thread: bool,
    /// Processes are told apart.
    pub per_process: bool,
    /// What is told of their frames and processes.
    pub detail: Detail,
    /// Whether the source lines of frames are looked up.
    pub sources: Sources,
    /// What blocked threads wait on.
    pub objects: bool,
    /// Only those of threads in whose name this is found.
    pub thread_names: Option<Regex>,
}

impl StackChoice {
    /// Tells programs, and makes room for unwind tables.
    pub fn configure(&self, object: &mut OpenObject) -> Result<()> {
        object.set(bpf::constants::WANT_USER_STACKS, self.user)?;
        object.set(bpf::constants::WANT_KERNEL_STACKS, self.kernel)?;
        self.walking.configure(object)?;
        object.set(bpf::constants::PER_THREAD, self.per_thread)?;
        make_room_for_tables(object)
    }

    /// Tells programs of blocked time whether what is waited on is to be found out.
    pub fn configure_objects(&self, object: &mut OpenObject, kernel: &Kernel) -> Result<()> {
        waits::configure(object, self.objects, kernel)
    }

    /// Whether user stacks are unwound by tables.
    pub fn unwinds(&self) -> bool {
        self.user && self.walking.call_graph != CallGraph::Fp
    }

    /// What keeps the unwind tables, if the choice takes any.
    pub fn unwinder<'a>(&self, object: &'a LoadedObject) -> Result<Option<Unwinder<'a>>> {
        match self.user {
            true => Unwinder::new(self.walking, object),
            false => Ok(None),
        }
    }
}

/// What a profile has of frames and of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Names of frames, and no processes. Frames that read alike are one.
    Names,
    /// All that is known. Frames of one address are one.
    Addresses,
}
