//! System call numbers on aarch64.

/// Number of `ioctl` in 64-bit and 32-bit programs.
pub(crate) const IOCTLS: [u32; 3] = [29, 54, 54];
