//! The ways to walk a user stack that a command line chooses from.

use bpf::types::CallGraph as Mode;

/// How user stacks are walked; the names are perf's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallGraph {
    /// By tables, and by frame pointers through code that has none.
    #[default]
    Auto,
    /// By frame pointers.
    Fp,
    /// By tables only.
    Dwarf,
}

impl CallGraph {
    /// The mode of that name.
    ///
    /// # Errors
    /// What the names are.
    pub fn by_name(name: &str) -> std::result::Result<CallGraph, String> {
        match name {
            "auto" => Ok(CallGraph::Auto),
            "fp" => Ok(CallGraph::Fp),
            "dwarf" => Ok(CallGraph::Dwarf),
            _ => Err("the modes are auto, fp and dwarf".to_owned()),
        }
    }

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CallGraph::Auto => "auto",
            CallGraph::Fp => "fp",
            CallGraph::Dwarf => "dwarf",
        }
    }

    /// `call_graph` of the BPF programs.
    pub fn mode(self) -> Mode {
        match self {
            CallGraph::Auto => Mode::CALL_GRAPH_AUTO,
            CallGraph::Fp => Mode::CALL_GRAPH_FP,
            CallGraph::Dwarf => Mode::CALL_GRAPH_DWARF,
        }
    }
}
