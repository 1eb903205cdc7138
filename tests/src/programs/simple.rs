//! The workload `simple`, which burns in known_burn and sleeps in known_sleep,
//! under a tool.

use crate::printed::folded::Line;
use crate::{Tool, Workload};

/// A tool on it.
pub fn on(tool: &str, simple: &Workload) -> Tool {
    Tool::attentive(tool).pid(simple.pid())
}

/// The function of `simple` that a tool must show.
pub fn known(tool: &str) -> &'static str {
    if tool == "oncputime" {
        "known_burn"
    } else {
        "known_sleep"
    }
}

/// Whether a stack has its user side.
pub fn is_user(line: &Line) -> bool {
    line.has("main") || line.has("known_work")
}
