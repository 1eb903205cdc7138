//! Runs of tools on the workload `simple`, which uses CPU time in `known_burn` and sleeps in
//! `known_sleep`.

use crate::printed::folded::Line;
use crate::{Tool, Workload};

/// Returns a tool with `simple` as its target.
pub fn on(tool: &str, simple: &Workload) -> Tool {
    Tool::attentive(tool).pid(simple.pid())
}

/// Returns the function of `simple` that a tool must show.
pub fn known(tool: &str) -> &'static str {
    if tool == "oncputime" {
        "known_burn"
    } else {
        "known_sleep"
    }
}

/// Returns whether a stack has user frames.
pub fn is_user(line: &Line) -> bool {
    line.has("main") || line.has("known_work")
}
