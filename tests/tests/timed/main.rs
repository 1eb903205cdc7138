//! What is held against what is known otherwise: tests that run side by side, as many
//! as there are CPUs.

mod cgroups;
mod clock;
mod idleness;
mod locks;
mod objects;
mod reasons;
mod sampling;
mod scale;
mod spans;
mod stacks;
mod trees;
mod waiting_intervals;
mod wakers;
