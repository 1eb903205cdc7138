//! System call numbers for seccomp filters.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as machine;
#[cfg(target_arch = "x86_64")]
use x86_64 as machine;

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
compile_error!(
    "shared/cli/src/arch has no module for this architecture: one provides the numbers of ioctl \
     by each kind of code that runs there"
);

pub(crate) use machine::IOCTLS;
