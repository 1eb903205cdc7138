//! Modes of unwinding user stacks, which users choose on the command line.

use bpf::types::CallGraph as Mode;

/// Mode of unwinding user stacks, with perf's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallGraph {
    /// Unwinds with tables, and with frame pointers through code without a table.
    #[default]
    Auto,
    /// Unwinds with frame pointers only.
    Fp,
    /// Unwinds with tables only.
    Dwarf,
}

impl CallGraph {
    /// Returns the mode with this name.
    ///
    /// # Errors
    /// No mode has this name. The error lists the names.
    pub fn by_name(name: &str) -> std::result::Result<CallGraph, String> {
        match name {
            "auto" => Ok(CallGraph::Auto),
            "fp" => Ok(CallGraph::Fp),
            "dwarf" => Ok(CallGraph::Dwarf),
            _ => Err("the modes are auto, fp and dwarf".to_owned()),
        }
    }

    /// Returns the name of the mode on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CallGraph::Auto => "auto",
            CallGraph::Fp => "fp",
            CallGraph::Dwarf => "dwarf",
        }
    }

    /// Returns the value of the programs' constant `call_graph` for this mode.
    pub fn mode(self) -> Mode {
        match self {
            CallGraph::Auto => Mode::CALL_GRAPH_AUTO,
            CallGraph::Fp => Mode::CALL_GRAPH_FP,
            CallGraph::Dwarf => Mode::CALL_GRAPH_DWARF,
        }
    }
}
