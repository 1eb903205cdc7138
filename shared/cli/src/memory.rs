//! Returns unused memory to the kernel, and limits the memory of a tool.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Makes the allocator return blocks of 1 MiB or more to the kernel as soon as they are free.
///
/// glibc raises its threshold up to 32 MiB after it sees such blocks freed, and then keeps them
/// (`M_MMAP_THRESHOLD` in mallopt(3)). The index of stacks doubles in a new block each time. glibc
/// would keep the smaller blocks, which are a seventh of the peak memory for 1,048,576 stacks.
pub(crate) fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    {
        const LARGE: libc::c_int = 1 << 20;
        // SAFETY: mallopt() sets a number in the allocator, or changes nothing.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
    }
}

/// Line that is printed when the limit is reached.
static REFUSAL: OnceLock<&'static str> = OnceLock::new();

/// Limits this process to `bytes` of memory. A program with the allocator [`Limited`] then prints
/// `refusal` on stderr and ends when it needs more.
pub fn limit_memory(bytes: u64, refusal: &'static str) {
    let limit = getrlimit(Resource::Data);
    let current = limit.current.map_or(bytes, |current| current.min(bytes));
    let limit = Rlimit {
        current: Some(current),
        ..limit
    };
    // If the kernel refuses, the old limit stays in force.
    if setrlimit(Resource::Data, limit).is_ok() {
        let _ = REFUSAL.set(refusal);
    }
}

/// The system's allocator, which ends the process when the limit of [`limit_memory`] is reached.
#[derive(Debug)]
pub struct Limited;

/// Returns the pointer. Ends the process if the pointer is null and a limit is set.
fn checked(pointer: *mut u8) -> *mut u8 {
    if pointer.is_null()
        && let Some(refusal) = REFUSAL.get()
    {
        for text in [refusal, "\n"] {
            // SAFETY: the pointer and length are those of a valid string.
            unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
        }
        // SAFETY: _exit() runs no destructor, which might allocate.
        unsafe { libc::_exit(1) };
    }
    pointer
}

// SAFETY: all calls go to the system's allocator.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        checked(unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        checked(unsafe { System.realloc(pointer, layout, size) })
    }
}
