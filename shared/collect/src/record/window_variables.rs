//! What programs know of the window, and what they could not keep in it:
//! `include/window.h` and `include/events.h`.

use bpf::types::Losses;
use loader::{LoadedObject, Result, Variable};

/// Variables of every program.
pub(crate) struct WindowVariables<'a> {
    /// When the window begins, CLOCK_MONOTONIC ns; 0 before that is known.
    pub(crate) start: Variable<'a, u64>,
    /// When it ends, CLOCK_MONOTONIC ns; 0 before that is known.
    pub(crate) stop: Variable<'a, u64>,
    /// What found no room so far.
    pub(crate) lost: Variable<'a, Losses>,
}

impl<'a> WindowVariables<'a> {
    pub(crate) fn new(object: &'a LoadedObject) -> Result<Self> {
        Ok(WindowVariables {
            start: object.variable(bpf::variables::WINDOW_START)?,
            stop: object.variable(bpf::variables::WINDOW_STOP)?,
            lost: object.variable(bpf::variables::LOST)?,
        })
    }
}
