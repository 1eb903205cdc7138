//! aarch64.

/// `ioctl` of 64-bit and 32-bit programs.
pub(crate) const IOCTLS: [u32; 3] = [29, 54, 54];
