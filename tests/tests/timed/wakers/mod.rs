//! Wakers of waits whose length is known.

mod agree;
mod chain;
mod each_other;
mod early;
mod told_apart;
