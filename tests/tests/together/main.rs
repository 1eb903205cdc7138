//! What the tools print and refuse: tests that run side by side, beside any
//! other load.

mod formats;
mod namespaces;
mod printed;
mod refused;
mod signals;
mod stacks;
mod systemscope;
mod targets;
mod wallclock;
