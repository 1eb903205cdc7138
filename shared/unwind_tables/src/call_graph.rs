//! Modes of unwinding user stacks that a command line chooses from.

use bpf::types::CallGraph as Mode;

/// Mode of unwinding user stacks; the names are perf's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallGraph {
    /// Unwinds by tables, and by frame pointers through code without a table.
    #[default]
    Auto,
    /// Unwinds by frame pointers.
    Fp,
    /// Unwinds by tables only.
    Dwarf,
}

impl CallGraph {
    /// Returns the mode with this name.
    ///
    /// # Errors
    /// Fails for any other name, and lists the names.
    pub fn by_name(name: &str) -> std::result::Result<CallGraph, String> {
        match name {
            "auto" => Ok(CallGraph::Auto),
            "fp" => Ok(CallGraph::Fp),
            "dwarf" => Ok(CallGraph::Dwarf),
            _ => Err("the modes are auto, fp and dwarf".to_owned()),
        }
    }

    /// Returns the mode's name on a command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CallGraph::Auto => "auto",
            CallGraph::Fp => "fp",
            CallGraph::Dwarf => "dwarf",
        }
    }

    /// Returns the mode as a value of the programs' constant `call_graph`.
    pub fn mode(self) -> Mode {
        match self {
            CallGraph::Auto => Mode::CALL_GRAPH_AUTO,
            CallGraph::Fp => Mode::CALL_GRAPH_FP,
            CallGraph::Dwarf => Mode::CALL_GRAPH_DWARF,
        }
    }
}
