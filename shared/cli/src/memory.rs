//! What a tool does with memory that it no longer needs.

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
