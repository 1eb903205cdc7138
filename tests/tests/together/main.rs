//! Output and error messages of the tools. These tests run side by side, and tolerate any load.

mod cgroups;
mod commands;
mod formats;
mod interpreted;
mod java;
mod namespaces;
mod node;
mod printed;
mod python;
mod refused;
mod signals;
mod stacks;
mod systemscope;
mod targets;
mod thread_names;
mod wallclock;
