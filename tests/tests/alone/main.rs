//! What the tools cost, and what is to be seen of a machine at rest: each test has it to itself.

mod cost;
mod floods;
mod idle;
mod real_time;
