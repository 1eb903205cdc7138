//! A fault, its stated outcome, and what came of it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use systemscope_tests::printed::table::Verdict;

use crate::leftovers::Before;

/// Something that happens to the tools.
pub(crate) struct Fault {
    /// What happens.
    pub(crate) name: &'static str,
    /// To whom.
    pub(crate) tools: &'static str,
    /// What must come of it.
    pub(crate) outcome: &'static str,
    /// Makes it happen; panics where the outcome is another.
    pub(crate) body: fn() -> End,
}

/// How a fault ended that did no harm.
pub(crate) enum End {
    /// As stated; says what was seen.
    Held(String),
    /// This machine cannot do it; says why.
    CannotHere(String),
}

/// The outcome as stated, and what was seen.
pub(crate) fn held(seen: impl Into<String>) -> End {
    End::Held(seen.into())
}

impl Fault {
    /// Makes it happen, and looks what is left of it.
    pub(crate) fn happen(&self) -> (Verdict, String) {
        let before = Before::look();
        let end = catch_unwind(AssertUnwindSafe(self.body));
        // What a missed outcome leaves half-way is killed.
        let left = before.what_is_left(end.is_err());
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
