//! What the tools cost: each test has the machine to itself.

mod cost;
