//! What is measured: each test has the machine to itself.

mod cgroups;
mod clock;
mod cost;
mod global_lock;
mod idleness;
mod locks;
mod objects;
mod reasons;
mod runtime_locks;
mod sampling;
mod scale;
mod spans;
mod stacks;
mod trees;
mod waiting_intervals;
mod wakers;
