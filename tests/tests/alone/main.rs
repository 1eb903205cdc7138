//! What is measured: each test has the machine to itself.

mod clock;
mod cost;
mod sampling;
mod scale;
mod spans;
mod stacks;
mod waiting_intervals;
mod wakers;
