//! The thread clock against the kernel's account.

mod accounting;
mod runnable;
mod short_waits;
mod sleepers;
mod thread_states;
mod thresholds;
