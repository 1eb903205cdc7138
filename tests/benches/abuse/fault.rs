//! Faults, their stated outcomes, and what was seen.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use systemscope_tests::printed::table::Verdict;

use crate::leftovers::Before;

/// Fault that is inflicted on the tools.
pub(crate) struct Fault {
    /// Text for the table: what happens.
    pub(crate) name: &'static str,
    /// Text for the table: the affected tools.
    pub(crate) tools: &'static str,
    /// Text for the table: the stated outcome.
    pub(crate) outcome: &'static str,
    /// Inflicts the fault, and panics if the outcome is not the stated one.
    pub(crate) body: fn() -> End,
}

/// Result of a fault that missed no expectation.
pub(crate) enum End {
    /// The outcome is the stated one; the text says what was seen.
    Held(String),
    /// This machine cannot inflict the fault; the text says why.
    CannotHere(String),
}

/// Returns the stated outcome with a text that says what was seen.
pub(crate) fn held(seen: impl Into<String>) -> End {
    End::Held(seen.into())
}

impl Fault {
    /// Inflicts the fault, and checks for leftovers.
    pub(crate) fn inflict(&self) -> (Verdict, String) {
        let before = Before::record();
        let end = catch_unwind(AssertUnwindSafe(self.body));
        // A fault with a missed outcome may leave processes half-way: they are killed.
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
