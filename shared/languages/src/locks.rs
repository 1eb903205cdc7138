//! Reasons of futex waits by the functions that wait: rows that a language or a library brings.

use profile::{Detail, Reason};

/// Pattern of a function's name.
#[derive(Clone, Copy, Debug)]
pub enum Name {
    /// The whole name.
    Is(&'static str),
    /// A part of the function's path.
    Has(&'static str),
}

/// Functions that show the reason of a wait.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Functions that wait, or on whose behalf other functions wait.
    pub functions: &'static [Name],
    /// Reason of the wait.
    pub reason: Reason,
    /// Detail of the reason.
    pub detail: Detail,
}

/// Rules that recognise waits for a language's locks.
#[derive(Clone, Copy, Debug)]
pub struct Locks {
    /// Symbol of the variable that has the lock that all threads of a runtime share. Threads wait
    /// for no other part of the variable.
    pub global: Option<&'static str>,
    /// Functions that use a primitive of the C library for a purpose of their own.
    pub purposes: &'static [Row],
    /// Functions that others are made of, for stacks in which no other function matches.
    pub foundations: &'static [Row],
    /// Returns whether a function belongs to the language, by its name in a profile. Such a
    /// function uses a lock of a foundation.
    pub is_user: fn(&str) -> bool,
}

impl Locks {
    /// Rules of a language about whose locks nothing is known.
    pub const NONE: Locks = Locks {
        global: None,
        purposes: &[],
        foundations: &[],
        is_user: |_| false,
    };
}
