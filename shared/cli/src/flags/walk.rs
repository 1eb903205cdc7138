//! Flags that choose how user stacks are unwound.

use clap::Args;
use collect::{CallGraph, Languages, Walking};

use super::values;

/// Flag that also shows the interpreter's own frames.
pub(super) const SHOWS_RUNTIME: &str = "--native-python";

/// Flags that choose how user stacks are unwound, and which languages' functions are shown.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = super::STACKS)]
pub struct WalkFlags {
    /// Unwind user stacks by tables (dwarf), frame pointers (fp), or both (auto)
    ///
    /// The tables are made from .eh_frame. Mode auto uses frame pointers in code without tables.
    #[arg(
        long, hide_short_help = true, value_name = "MODE", default_value = "auto",
        value_parser = CallGraph::by_name
    )]
    call_graph: CallGraph,

    /// Maximum frames of a user stack, native ones and a language's each
    ///
    /// A deeper stack is cut off at its root, and marked.
    #[arg(
        long, hide_short_help = true, alias = "perf-max-stack-depth", value_name = "N",
        default_value_t = Walking::MAX_FRAMES,
        allow_negative_numbers = true, value_parser = values::frames
    )]
    max_stack: usize,

    #[arg(
        long, hide_short_help = true, value_name = "LANGUAGE", default_value = "all",
        value_parser = Languages::by_name,
        help = format!("Show functions of this language beside native ones: {}", Languages::names("or"))
    )]
    language: Languages,

    /// Also show the native frames that run functions of a language
    #[arg(long, hide_short_help = true)]
    native_python: bool,
}

impl WalkFlags {
    /// Returns how user stacks are unwound.
    #[must_use]
    pub fn walking(&self) -> Walking {
        Walking {
            call_graph: self.call_graph,
            max_stack: self.max_stack,
            languages: self.language,
            shows_runtime: self.native_python,
        }
    }
}

impl Default for WalkFlags {
    fn default() -> WalkFlags {
        let Walking {
            call_graph,
            max_stack,
            languages,
            shows_runtime,
        } = Walking::default();
        WalkFlags {
            call_graph,
            max_stack,
            language: languages,
            native_python: shows_runtime,
        }
    }
}
