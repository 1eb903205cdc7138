//! Rules that find the reason of a futex wait from the waiting functions. Languages and libraries
//! provide such rules.

use profile::{Detail, Reason};

/// Pattern of a function's name.
#[derive(Clone, Copy, Debug)]
pub enum Name {
    /// Matches the whole name.
    Is(&'static str),
    /// Matches a part of the function's path.
    Has(&'static str),
}

/// Functions that show the reason of a wait.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Functions that wait, or for which other functions wait.
    pub functions: &'static [Name],
    /// Reason of the wait.
    pub reason: Reason,
    /// Detail of the reason.
    pub detail: Detail,
}

/// Rules that recognise waits for locks of a language.
#[derive(Clone, Copy, Debug)]
pub struct Locks {
    /// Symbol of the variable that contains the lock that all threads of a runtime share. Threads
    /// wait for no other part of the variable.
    pub global: Option<&'static str>,
    /// Detail of a wait for that lock.
    pub shared: Option<Detail>,
    /// Functions of the runtime's own work. The first row that matches any function of a stack
    /// decides before all other rules.
    pub work: &'static [Row],
    /// Functions that use a primitive of the C library for a purpose of their own.
    pub purposes: &'static [Row],
    /// Functions on which other functions are built. They decide if the stack has no function with
    /// a purpose of its own.
    pub foundations: &'static [Row],
    /// Function that returns whether a function belongs to the language, from its name in a
    /// profile. Such functions use the locks of foundations.
    pub is_user: fn(&str) -> bool,
}

impl Locks {
    /// Rules of a language whose locks are unknown.
    pub const NONE: Locks = Locks {
        global: None,
        shared: None,
        work: &[],
        purposes: &[],
        foundations: &[],
        is_user: |_| false,
    };
}
