//! The structs of `include/wakers.h` that cross the border, in Rust.

use plain::Plain;

use crate::offwaketime::types as c;
use crate::types::{COMM_LENGTH, ClockRecord, Thread};

/// The longest chain of wakers.
pub const MOST_HOPS: usize = 8;

/// Kind of a message: [`WakerEvent`].
pub const EVENT_WAKER: u32 = 5;
/// Kind of a message: [`WakerChainEvent`].
pub const EVENT_WAKER_CHAIN: u32 = 6;

/// Waker ID: the wake-up was not seen.
pub const WAKER_MISSED: u64 = 0;
/// Waker ID: the window ended first.
pub const WAKER_STILL_BLOCKED: u64 = 1;
/// Waker ID: one that was not asked for.
pub const WAKER_UNWANTED: u64 = 2;

/// `enum context`: a task's own work.
pub const CONTEXT_TASK: u32 = 0;
/// `enum context`: work that an interrupt left for later.
pub const CONTEXT_SOFTIRQ: u32 = 1;
/// `enum context`: a hardware interrupt, or an NMI.
pub const CONTEXT_INTERRUPT: u32 = 2;
/// `enum context`: one of the others, as the kernel stack will show.
pub const CONTEXT_UNKNOWN: u32 = 3;

/// `struct waker_event`: one hop of a chain of wakers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct WakerEvent {
    /// [`EVENT_WAKER`].
    pub kind: u32,
    /// `CONTEXT_`: in an interrupt the task is not to be taken for the waker.
    pub context: u32,
    /// The hop's ID.
    pub id: u64,
    /// ID of the user stack.
    pub user: u64,
    /// ID of the kernel stack.
    pub kernel: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// The thread's name at the time.
    pub comm: [u8; COMM_LENGTH],
}

/// `struct waker_chain_event`: who woke, who had woken that one, and so on.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct WakerChainEvent {
    /// [`EVENT_WAKER_CHAIN`].
    pub kind: u32,
    /// How many hops there are.
    pub hop_count: u32,
    /// The chain's ID.
    pub id: u64,
    /// IDs of the hops; after `hop_count` of them anything.
    pub hops: [u64; MOST_HOPS],
}

/// `struct thread` of a program that keeps a thread's wakers with its clock.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SleepingThread {
    /// Its clock.
    pub thread: Thread,
    /// `wake.waker`: who ended its last wait.
    pub waker: u64,
}

impl ClockRecord for SleepingThread {
    fn thread(&self) -> &Thread {
        &self.thread
    }
}

// SAFETY: each is repr(C), made of integers only, and any bytes are a value.
unsafe impl Plain for WakerEvent {}
// SAFETY: as above.
unsafe impl Plain for WakerChainEvent {}
// SAFETY: as above.
unsafe impl Plain for SleepingThread {}

const _: () = {
    assert!(size_of::<SleepingThread>() == size_of::<c::thread>() - size_of::<c::wake>() + 8);
};
