//! Variables of the window and of its losses (`include/window.h`, `include/events.h`).

use bpf::types::Losses;
use loader::{LoadedObject, Result, Variable};

/// Variables of the window, which every object has.
pub(crate) struct WindowVariables<'a> {
    /// Time at which the window opens, in ns of CLOCK_MONOTONIC; 0 while it is unknown.
    pub(crate) start: Variable<'a, u64>,
    /// Time at which the window closes, in ns of CLOCK_MONOTONIC; 0 while it is unknown.
    pub(crate) stop: Variable<'a, u64>,
    /// Counts of events that exceeded a limit of capacity.
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
