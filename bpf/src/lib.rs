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

include!(concat!(env!("OUT_DIR"), "/programs.rs"));
