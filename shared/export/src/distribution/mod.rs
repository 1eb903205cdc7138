//! Distributions of spans, one module per format.

pub mod hgrm;
pub mod json;
pub mod log2;
pub mod percentiles;
mod quantiles;

use profile::spans::{Apart, Scale};

/// Returns the name of an owner's ID: `pid` or `tid`.
fn id_name(apart: Apart) -> &'static str {
    match apart {
        Apart::Processes => "pid",
        Apart::Threads => "tid",
    }
}

/// Returns bcc's name of the unit.
fn unit_name(scale: Scale) -> &'static str {
    match scale {
        Scale::Microseconds => "usecs",
        Scale::Milliseconds => "msecs",
    }
}

#[cfg(test)]
mod tests;
