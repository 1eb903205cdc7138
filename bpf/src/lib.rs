//! The BPF programs, as skeletons to load, and the types they share with user
//! space.
//!
//! `src/*.bpf.c` holds one program per tool, `include/` what they share. The
//! build compiles them and generates a module for each.

pub mod spans;
pub mod types;
pub mod unwind;
pub mod wakers;

mod shared;

pub use shared::{
    ClockState, FilterConfig, IntervalConfig, SharedConfig, SharedState, WindowState,
};

/// The skeleton of `cpudist.bpf.c`.
#[allow(
    missing_docs,
    unreachable_pub,
    warnings,
    clippy::all,
    clippy::restriction
)]
pub mod cpudist {
    include!(concat!(env!("OUT_DIR"), "/cpudist.skel.rs"));
}

/// The skeleton of `offcputime.bpf.c`.
#[allow(
    missing_docs,
    unreachable_pub,
    warnings,
    clippy::all,
    clippy::restriction
)]
pub mod offcputime {
    include!(concat!(env!("OUT_DIR"), "/offcputime.skel.rs"));
}

/// The skeleton of `offwaketime.bpf.c`.
#[allow(
    missing_docs,
    unreachable_pub,
    warnings,
    clippy::all,
    clippy::restriction
)]
pub mod offwaketime {
    include!(concat!(env!("OUT_DIR"), "/offwaketime.skel.rs"));
}

/// The skeleton of `oncputime.bpf.c`.
#[allow(
    missing_docs,
    unreachable_pub,
    warnings,
    clippy::all,
    clippy::restriction
)]
pub mod oncputime {
    include!(concat!(env!("OUT_DIR"), "/oncputime.skel.rs"));
}
