//! Loads BPF programs: checks privileges and kernel features, selects targets, and opens, loads and
//! attaches objects.
//!
//! A tool opens an [`OpenObject`]. [`Kernel::configure`], [`Targets::configure`] and the tool then
//! set constants and sizes of maps. After that the tool loads the object. Callers ask the
//! [`LoadedObject`] for maps, programs and variables by name.

mod arch;
mod cpus;
mod error;
pub mod iterators;
mod kernel;
mod kernel_types;
pub mod maps;
mod object;
mod preflight;
mod sampling;
mod targets;
mod time;

pub use cpus::{online_cpus, run_here, run_on_each};
pub use error::{Context, Error, Result};
pub use kernel::{Feature, Kernel, are_kernel_addresses_public, kernel_calls, kernel_names};
pub use object::{LoadedObject, OpenObject, Variable};
pub use preflight::{Capability, capabilities, check_privileges};
pub use sampling::{Event, Samplers};
pub use targets::{
    AwaitedCgroup, Cgroup, CgroupList, CgroupMount, Container, ProcessHandle, ProcessNames,
    TargetWatch, Targets, containers, ids_of_name, is_hexadecimal, is_unit_of_system, is_whole_id,
    unit_name, units,
};
pub use time::{boottime_offset_ns, monotonic_ns, sleep_until};
