//! What the tools print and refuse: tests that run side by side, beside any
//! other load.

mod cgroups;
mod commands;
mod formats;
mod namespaces;
mod printed;
mod python;
mod refused;
mod signals;
mod stacks;
mod systemscope;
mod targets;
mod thread_names;
mod wallclock;
