//! Reasons of waits for a futex, by the functions that wait: rows that a language or a library
//! brings.

use profile::{Detail, Reason};

/// How a function is recognised.
#[derive(Clone, Copy, Debug)]
pub enum Name {
    /// By all of its name.
    Is(&'static str),
    /// By a part of its path.
    Has(&'static str),
}

/// Functions that say what is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Functions that wait, or for whose sake others do.
    pub functions: &'static [Name],
    /// The reason of the wait.
    pub reason: Reason,
    /// The reason in particular.
    pub detail: Detail,
}

/// Waits for a language's locks.
#[derive(Clone, Copy, Debug)]
pub struct Locks {
    /// Symbol of the variable that has the lock that all threads of a runtime share. None of the
    /// variable's other parts is waited for.
    pub global: Option<&'static str>,
    /// Functions that have a primitive of the C library wait for a purpose of their own.
    pub purposes: &'static [Row],
    /// Functions that others are made of, where none of those is seen.
    pub foundations: &'static [Row],
    /// Whether a function is one of the language's, by its name in a profile: such a function uses
    /// a lock of a foundation's.
    pub is_user: fn(&str) -> bool,
}

impl Locks {
    /// Nothing is known.
    pub const NONE: Locks = Locks {
        global: None,
        purposes: &[],
        foundations: &[],
        is_user: |_| false,
    };
}
