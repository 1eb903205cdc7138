//! Faults, their stated outcomes, and their outcomes on this machine.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use systemscope_tests::printed::table::Verdict;

use crate::leftovers::Before;

/// Fault that the tools must survive.
pub(crate) struct Fault {
    /// Text for the table: the event.
    pub(crate) name: &'static str,
    /// Text for the table: the affected tools.
    pub(crate) tools: &'static str,
    /// Text for the table: the stated outcome.
    pub(crate) outcome: &'static str,
    /// Causes the fault. Panics if the outcome is not the stated one.
    pub(crate) body: fn() -> End,
}

/// Result of a fault that missed no expectation.
pub(crate) enum End {
    /// The outcome is the stated one. The text describes it.
    Held(String),
    /// This machine cannot cause the fault. The text says why.
    CannotHere(String),
}

/// Returns [`End::Held`] with a text that describes the outcome.
pub(crate) fn held(seen: impl Into<String>) -> End {
    End::Held(seen.into())
}

impl Fault {
    /// Causes the fault, and checks for leftovers.
    pub(crate) fn inflict(&self) -> (Verdict, String) {
        let before = Before::record();
        let end = catch_unwind(AssertUnwindSafe(self.body));
        // A fault with a missed outcome may leave processes behind. They are killed.
        let left = before.leftovers(end.is_err());
        let (verdict, seen) = match end {
            Ok(End::Held(seen)) => (Verdict::Ok, seen),
            Ok(End::CannotHere(why)) => (Verdict::NotHere, why),
            Err(panic) => (Verdict::Missed, message(panic.as_ref())),
        };
        if left.is_empty() {
            (verdict, seen)
        } else {
            (
                Verdict::Missed,
                format!("{seen}; left: {}", left.join(", ")),
            )
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked").to_owned()
}
