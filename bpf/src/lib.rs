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

/// A module for each BPF program that the build script of this package compiled.
#[macro_export]
macro_rules! skeletons {
    ($($program:ident)*) => {$(
        #[doc = concat!("The skeleton of `", stringify!($program), ".bpf.c`.")]
        #[allow(
            missing_docs,
            unreachable_pub,
            warnings,
            clippy::all,
            clippy::restriction
        )]
        pub mod $program {
            include!(concat!(env!("OUT_DIR"), "/", stringify!($program), ".skel.rs"));
        }
    )*};
}

skeletons!(cpudist offcputime offwaketime oncputime);
