//! How user stacks are walked.

use clap::Args;
use collect::{CallGraph, Languages, Walking};

use crate::values;

/// How user stacks are walked, and whose functions are shown.
#[derive(Args, Clone, Copy, Debug)]
pub struct WalkFlags {
    /// How to walk user stacks: by tables made of .eh_frame (dwarf), by frame
    /// pointers (fp), or by tables and, in code that has none, frame pointers (auto)
    #[arg(
        long, value_name = "MODE", default_value = "auto",
        value_parser = CallGraph::by_name
    )]
    call_graph: CallGraph,

    /// The most frames of a user stack, native ones and Python's each; of more
    /// the root end is cut off, and said to be
    #[arg(
        long, alias = "perf-max-stack-depth", value_name = "N",
        default_value_t = Walking::MOST_FRAMES,
        allow_negative_numbers = true, value_parser = values::frames
    )]
    max_stack: usize,

    #[arg(
        long, value_name = "LANGUAGE", default_value = "all",
        value_parser = Languages::by_name,
        help = format!("Whose functions to show beside native ones: {}", Languages::names("or"))
    )]
    language: Languages,

    /// Show the interpreter's own frames that run Python functions, too
    #[arg(long)]
    native_python: bool,
}

impl WalkFlags {
    /// What they say.
    #[must_use]
    pub fn walking(&self) -> Walking {
        Walking {
            call_graph: self.call_graph,
            max_stack: self.max_stack,
            languages: self.language,
            shows_runtime: self.native_python,
        }
    }

    /// The same as a child's command line.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            format!("--call-graph={}", self.call_graph.name()),
            format!("--max-stack={}", self.max_stack),
            format!("--language={}", self.language.name()),
        ];
        arguments.extend(self.native_python.then(|| "--native-python".to_owned()));
        arguments
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
