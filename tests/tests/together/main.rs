//! What the tools print and refuse: tests that run side by side, beside any
//! other load.

mod namespaces;
mod printed;
mod refused;
mod signals;
mod stacks;
mod targets;
mod wallclock;
