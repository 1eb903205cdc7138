//! Choice of the stacks that a tool captures.

use loader::{Kernel, LoadedObject, OpenObject, Result};
use regex::Regex;
use symbolize::Sources;

use crate::record::timeline::{self, Recorder};
use unwind_tables::{CallGraph, Unwinder, Walking, make_room_for_tables};

/// Choice of the stacks to capture, of how to distinguish them, and of the detail to keep.
#[derive(Clone, Debug)]
pub struct StackChoice {
    /// True if user stacks are captured.
    pub user: bool,
    /// True if kernel stacks are captured.
    pub kernel: bool,
    /// Settings for the unwind of user stacks.
    pub walking: Walking,
    /// True if threads are distinguished.
    pub per_thread: bool,
    /// True if processes are distinguished.
    pub per_process: bool,
    /// Detail of frames and processes.
    pub detail: Detail,
    /// Sources from which frames get source lines.
    pub sources: Sources,
    /// True if programs find the resources that threads wait on.
    pub objects: bool,
    /// Expression that the name of a thread must match to be measured.
    pub thread_names: Option<Regex>,
    /// Minimum length, in ns, of an interval with a row of its own in the timeline; `None` without
    /// a timeline.
    pub timeline_least_ns: Option<u64>,
    /// Recorder that keeps only the last part of the window, if there is one. It needs a timeline.
    pub recorder: Option<Recorder>,
}

impl StackChoice {
    /// Sets the constants of programs, and the capacity of unwind tables.
    pub fn configure(&self, object: &mut OpenObject) -> Result<()> {
        object.set(bpf::constants::WANT_USER_STACKS, self.user)?;
        object.set(bpf::constants::WANT_KERNEL_STACKS, self.kernel)?;
        self.walking.configure(object)?;
        object.set(bpf::constants::PER_THREAD, self.per_thread)?;
        timeline::configure(object, self.timeline_least_ns, self.recorder.as_ref())?;
        make_room_for_tables(object)
    }

    /// Sets whether programs that count blocked time find the resources.
    pub fn configure_objects(&self, object: &mut OpenObject, kernel: &Kernel) -> Result<()> {
        waits::configure(object, self.objects, kernel)
    }

    /// Returns whether programs unwind user stacks with unwind tables.
    pub fn unwinds(&self) -> bool {
        self.user && self.walking.call_graph != CallGraph::Fp
    }

    /// Returns the keeper of unwind tables, if user stacks are unwound with tables.
    pub fn unwinder<'a>(&self, object: &'a LoadedObject) -> Result<Option<Unwinder<'a>>> {
        if self.user {
            Unwinder::new(self.walking, object)
        } else {
            Ok(None)
        }
    }
}

/// Detail of frames and processes in a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Names of frames without processes. Frames with the same text are one frame.
    Names,
    /// Addresses of frames, and processes. Frames with the same address are one frame.
    Addresses,
}
