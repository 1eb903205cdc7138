//! Sources of truth: the kernel, other tools, and workloads that measure themselves.

pub mod account;
pub mod bpf_objects;
pub mod elf;
pub mod gdb;
pub mod idle;
pub mod idleness;
pub mod known_chains;
pub mod short_waits;
pub mod statistics;
pub mod timeline;
pub(crate) mod tracing;
pub mod wake_ups;
