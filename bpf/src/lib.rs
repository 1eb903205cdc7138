//! The BPF programs, as skeletons to load, and the types they share with user
//! space.
//!
//! `src/*.bpf.c` holds one program per tool, `include/` what they share. The
//! build compiles them and generates [`offcputime`] and [`oncputime`].

pub mod types;
pub mod unwind;

mod shared;

pub use shared::{SharedConfig, SharedState};

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
