//! Measures the CPU time and the memory that work takes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

thread_local! {
    /// Bytes that this thread has allocated and not freed.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// Maximum of [`HELD`] since the last call of [`cost`].
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// Allocator of the system that also counts the bytes of each thread:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: tamper::Measured = tamper::Measured;
///
/// let cost = tamper::cost(|| drop(vec![0_u8; 1000])).1;
/// assert!((1000..2000).contains(&cost.bytes));
/// ```
#[derive(Debug)]
pub struct Measured;

/// Cost of some work.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// CPU time of the thread, which other load on the machine does not increase.
    pub time: Duration,
    /// Maximum memory in use, in bytes; 0 unless the global allocator is [`Measured`].
    pub bytes: usize,
}

/// Runs `work`, and returns its result and its cost.
pub fn cost<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    let before = HELD.get();
    MOST.set(before);
    let start = cpu_time();
    let done = work();
    let time = cpu_time().saturating_sub(start);
    let bytes = usize::try_from(MOST.get() - before).unwrap_or(0);
    (done, Cost { time, bytes })
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn count(bytes: isize) {
    // While a thread ends, its account may no longer exist.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: the system's allocator does all the work.
unsafe impl GlobalAlloc for Measured {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
