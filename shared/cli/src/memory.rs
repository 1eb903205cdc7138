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

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    /// Whether so many bytes are mapped for themselves, and so go back as soon as they are
    /// free.
    fn are_mapped(bytes: usize) -> bool {
        // SAFETY: it only counts.
        let mapped = || unsafe { libc::mallinfo() }.hblkhd as usize;
        let before = mapped();
        let piece = std::hint::black_box(vec![1_u8; bytes]);
        let after = mapped();
        drop(piece);
        after >= before + bytes
    }

    #[test]
    fn large_pieces_go_back_and_small_ones_stay() {
        give_back_large_pieces();
        // Others that come and go meanwhile are counted, too.
        let is_seen = |mapped: bool, bytes| (0..100).any(|_| are_mapped(bytes) == mapped);
        // Without, a piece below what has come and gone would be kept.
        assert!(is_seen(true, 16 << 20) && is_seen(true, 4 << 20));
        assert!(is_seen(false, 512 << 10));
    }
}
