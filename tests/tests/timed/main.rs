//! Measurements against truths that are known independently. These tests run side by side, one for
//! each CPU.

mod cgroups;
mod clock;
mod goroutines;
mod idleness;
mod locks;
mod objects;
mod reasons;
mod sampling;
mod scale;
mod spans;
mod stacks;
mod timeline;
mod trees;
mod waiting_intervals;
mod wakers;
