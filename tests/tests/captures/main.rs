//! Malicious captures. Every command ends on them within fixed limits of memory and time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

mod bombs;
mod every_command;
mod mutated;
mod written;

#[global_allocator]
static ALLOCATOR: tamper::Measured = tamper::Measured;
