//! How user stacks are walked, and how far.

use bpf::types::{KERNEL_STACK_DEPTH, PYTHON_DEPTH, STACK_DEPTH};
use loader::{OpenObject, Result};

use super::CallGraph;

// Readers of captures refuse deeper stacks: there is room for functions that are inlined.
const _: () = assert!(8 * (STACK_DEPTH + PYTHON_DEPTH) <= profile::capture::MOST_DEPTH);

/// Whose functions are shown beside native ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Languages {
    /// Those of every language that is known.
    #[default]
    Known,
    /// Python's, which are expected to be there.
    Python,
    /// No others.
    None,
}

impl Languages {
    /// What is called so on a command line.
    ///
    /// # Errors
    /// What the names are.
    pub fn by_name(name: &str) -> std::result::Result<Languages, String> {
        match name {
            "all" => Ok(Languages::Known),
            "python" => Ok(Languages::Python),
            "none" => Ok(Languages::None),
            _ => Err("the languages are python, all that are known (all), and none".to_owned()),
        }
    }

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Languages::Known => "all",
            Languages::Python => "python",
            Languages::None => "none",
        }
    }
}

/// How user stacks are walked.
#[derive(Clone, Copy, Debug)]
pub struct Walking {
    /// By what.
    pub call_graph: CallGraph,
    /// How many native frames are walked at most, and how many of an interpreter.
    pub max_stack: usize,
    /// Whose frames are put between the native ones.
    pub languages: Languages,
    /// Whether the native frames that run Python functions are shown with them.
    pub native_python: bool,
}

impl Walking {
    /// The most frames that can be asked for.
    pub const MOST_FRAMES: usize = STACK_DEPTH;

    pub(crate) fn configure(&self, object: &mut OpenObject) -> Result<()> {
        let frames = |depth: usize| u32::try_from(depth).unwrap_or(u32::MAX);
        object.set(bpf::constants::CALL_GRAPH, self.call_graph.mode())?;
        object.set(bpf::constants::MAX_STACK, frames(self.max_stack))?;
        object.set(
            bpf::constants::HELPER_STACK_DEPTH,
            frames(Depths::of_kernel(self).user),
        )
    }
}

impl Default for Walking {
    fn default() -> Walking {
        Walking {
            call_graph: CallGraph::Auto,
            max_stack: Walking::MOST_FRAMES,
            languages: Languages::Known,
            native_python: false,
        }
    }
}

/// How many frames the kernel tells of a stack at most: one that has as many may have more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Depths {
    /// Of a user stack, by frame pointers.
    pub(crate) user: usize,
    /// Of its own.
    pub(crate) kernel: usize,
}

impl Depths {
    /// Of this kernel, as it is set: `kernel.perf_event_max_stack`.
    pub(crate) fn of_kernel(walking: &Walking) -> Depths {
        let set = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_stack");
        let set = set.ok().and_then(|set| set.trim().parse().ok());
        let set = set.unwrap_or(KERNEL_STACK_DEPTH);
        Depths {
            user: walking.max_stack.min(set),
            kernel: KERNEL_STACK_DEPTH.min(set),
        }
    }
}
