//! Releases unused memory to the kernel, and limits how much a tool may have.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Has large pieces of memory go back to the kernel as soon as they are free.
///
/// glibc keeps pieces of up to 32 MiB for later, once it has seen that they come and go
/// (`M_MMAP_THRESHOLD` in mallopt(3)). What finds stacks among millions is made anew each
/// time that it doubles, and the smaller ones would stay: a seventh of the most memory
/// that 1,048,576 stacks take.
pub(crate) fn give_back_large_pieces() {
    #[cfg(target_env = "gnu")]
    {
        const LARGE: libc::c_int = 1 << 20;
        // SAFETY: it sets a number of the allocator's. Where that is refused all stays as it is.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
    }
}

/// Line that tells that the limit is reached.
static REFUSAL: OnceLock<&'static str> = OnceLock::new();

/// Lets this process have so much memory and no more. A program whose allocator is [`Limited`]
/// then ends with `refusal` on stderr.
pub fn limit_memory(bytes: u64, refusal: &'static str) {
    let limit = getrlimit(Resource::Data);
    let current = limit.current.map_or(bytes, |current| current.min(bytes));
    let limit = Rlimit {
        current: Some(current),
        ..limit
    };
    // If the kernel refuses, the limit stays as it was.
    if setrlimit(Resource::Data, limit).is_ok() {
        let _ = REFUSAL.set(refusal);
    }
}

/// The system's allocator, which ends the process where [`limit_memory`] leaves it nothing.
#[derive(Debug)]
pub struct Limited;

/// Returns what was allocated.
fn there(pointer: *mut u8) -> *mut u8 {
    if pointer.is_null()
        && let Some(refusal) = REFUSAL.get()
    {
        for text in [refusal, "\n"] {
            // SAFETY: the text is there.
            unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
        }
        // SAFETY: no destructor runs, which might allocate.
        unsafe { libc::_exit(1) };
    }
    pointer
}

// SAFETY: the system's allocator does all of it.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        there(unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        there(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        there(unsafe { System.realloc(pointer, layout, size) })
    }
}
