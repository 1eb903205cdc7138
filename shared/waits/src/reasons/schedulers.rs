//! Finds threads that the scheduler of a runtime has parked because no task can run.

use std::collections::HashMap;

use languages::Name::{self, Has, Is};
use profile::{Profile, Reason, StackId};

use super::names;
use super::user_functions::{DEEPEST, is_any};

/// Functions in which a scheduler waits for a task that can run. They run no task themselves.
const WAIT_FOR_TASKS: &[Name] = &[
    // tokio: src/runtime/scheduler/. Releases before 1.29 had the thread pool in src/runtime/.
    Has("tokio::runtime::scheduler::multi_thread::worker::Context::park"),
    Has("tokio::runtime::scheduler::current_thread::Context::park"),
    Has("tokio::runtime::thread_pool::worker::Context::park"),
    // Go: src/runtime/proc.go.
    Is("runtime.stopm"),
    Is("runtime.findRunnable"),
    Is("runtime.findrunnable"),
];

/// Stacks of schedulers. Each stack is evaluated once.
#[derive(Default)]
pub(super) struct Schedulers {
    by_stack: HashMap<StackId, bool>,
}

impl Schedulers {
    /// Returns whether a wait for this reason, in this user stack, is for a task that can run.
    pub(super) fn wait_for_task(
        &mut self,
        profile: &Profile,
        stack: StackId,
        reason: Reason,
    ) -> bool {
        // Schedulers have locks too.
        if !matches!(reason, Reason::Condition | Reason::Events) {
            return false;
        }
        *self.by_stack.entry(stack).or_insert_with(|| {
            let mut functions = names(profile, stack).take(DEEPEST);
            functions.any(|function| is_any(WAIT_FOR_TASKS, function))
        })
    }
}
