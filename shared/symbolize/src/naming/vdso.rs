//! The vDSO, code that the kernel maps into every process. All 64-bit processes have the same vDSO,
//! so the vDSO of this program serves for all of them.

use std::fs::File;
use std::io::{Error, ErrorKind, Result, Write};
use std::os::unix::fs::FileExt;

use rustix::fs::MemfdFlags;

use crate::process::maps;

/// Maximum size of the vDSO, in bytes. The kernel's vDSO is far smaller.
const LARGEST: u64 = 1 << 20;

/// Copies the vDSO of this process to a file in memory.
///
/// # Errors
/// This process has no vDSO, or cannot read its own memory.
pub(crate) fn image() -> Result<File> {
    let maps = maps::executable(File::open("/proc/self/maps")?)?.unwrap_or_default();
    let vdso = maps.code.iter().find(|entry| entry.path == b"[vdso]");
    let vdso = vdso.ok_or_else(|| Error::new(ErrorKind::NotFound, "no vDSO"))?;
    let mut image = vec![0; (vdso.end - vdso.start).min(LARGEST) as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut image, vdso.start)?;
    let mut file = File::from(rustix::fs::memfd_create("vdso", MemfdFlags::CLOEXEC)?);
    file.write_all(&image)?;
    Ok(file)
}
