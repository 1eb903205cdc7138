//! System call numbers on x86-64.

/// Number of `ioctl` in 64-bit, 32-bit and x32 programs.
pub(crate) const IOCTLS: [u32; 3] = [16, 54, 0x4000_0000 | 514];
