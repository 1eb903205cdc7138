//! Selects the kernel's types that a BPF object names.
//!
//! libbpf searches all types of the kernel, about 150,000, for each type that an object names. That
//! search takes longer than everything else that libbpf does. Callers therefore give libbpf a file
//! with only the named types and the types inside them, a few hundred.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::slice;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

mod some;

use some::some_of;

/// File with all types of the kernel.
const KERNEL: &str = "/sys/kernel/btf/vmlinux";
/// File with the types of the only module whose types objects name. Since 6.4 it cannot be a
/// module, and the file is missing. libbpf searches modules only together with all types of the
/// kernel.
const MODULE: &str = "/sys/kernel/btf/unix";

/// File of types, in anonymous memory.
pub(crate) struct KernelTypes(OwnedFd);

impl KernelTypes {
    /// Makes a file of the types with one of these names. Returns `None` if no type is needed, or
    /// if the kernel's types have an unknown format. libbpf then searches all types.
    pub(crate) fn named(names: &[&str]) -> Option<KernelTypes> {
        if names.is_empty() || Path::new(MODULE).exists() {
            return None;
        }
        let kernel = File::open(KERNEL).ok()?;
        let some = match Mapped::whole(&kernel) {
            Some(all) => some_of(all.bytes(), names)?,
            None => some_of(&fs::read(KERNEL).ok()?, names)?,
        };
        let file = memfd_create("kernel-types", MemfdFlags::CLOEXEC).ok()?;
        let mut file = File::from(file);
        file.write_all(&some).ok()?;
        Some(KernelTypes(file.into()))
    }

    /// Returns a path at which this process can open the file.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

/// Read-only mapping of a file.
struct Mapped {
    start: NonNull<u8>,
    length: usize,
}

impl Mapped {
    /// Maps a whole file. Returns `None` if the kernel cannot map the file. Kernels since 6.16 can
    /// map the file of types.
    fn whole(file: &File) -> Option<Mapped> {
        let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
        // SAFETY: the kernel chooses the address of the new mapping, so no other memory changes.
        let start = unsafe {
            mmap(
                ptr::null_mut(),
                length,
                ProtFlags::READ,
                MapFlags::PRIVATE,
                file,
                0,
            )
        };
        let start = NonNull::new(start.ok()?.cast())?;
        Some(Mapped { start, length })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has this length as long as `self` lives, and the kernel's types do
        // not change.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping has this length, and nothing else refers to it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use libbpf_rs::btf::types::{Enum, MemberAttr, Struct};
    use libbpf_rs::btf::{Btf, BtfType, HasSize};

    use super::*;

    const NAMES: [&str; 3] = ["task_struct", "sock", "bpf_func_id"];

    /// Returns all members of a struct and of the structs in it: the name, the kind of the type,
    /// and the offset of each.
    fn members(btf: &Btf<'_>, found: &Struct<'_>, begin: u32) -> Vec<(String, String, u32)> {
        let mut all = Vec::new();
        for member in found.iter() {
            let at = match member.attr {
                MemberAttr::Normal { offset } => offset,
                MemberAttr::BitField { offset, .. } => offset,
            };
            let name = member.name.unwrap_or_default().to_string_lossy();
            let ty = btf.type_by_id::<BtfType<'_>>(member.ty).unwrap();
            let ty = ty.skip_mods_and_typedefs();
            all.push((name.into_owned(), format!("{:?}", ty.kind()), begin + at));
            if let Ok(inner) = Struct::try_from(ty) {
                all.extend(members(btf, &inner, begin + at));
            }
        }
        all
    }

    #[test]
    fn some_types_are_as_among_all() {
        let some = KernelTypes::named(&NAMES).unwrap();
        let length = fs::metadata(some.path()).unwrap().len();
        assert!(length < fs::metadata(KERNEL).unwrap().len(), "{length}");
        let some = Btf::from_path(some.path()).unwrap();
        let all = Btf::from_vmlinux().unwrap();
        for name in &NAMES[..2] {
            let [some, all] = [&some, &all].map(|btf| {
                let found = btf.type_by_name::<Struct<'_>>(name).unwrap();
                (found.size(), members(btf, &found, 0))
            });
            assert!(all.1.len() > 20, "{name}: {all:?}");
            assert_eq!(some, all, "{name}");
        }
        let [some_values, all_values] = [&some, &all].map(|btf| {
            let found = btf.type_by_name::<Enum<'_>>(NAMES[2]).unwrap();
            let value = |member: libbpf_rs::btf::types::EnumMember<'_>| {
                (member.name.unwrap().to_os_string(), member.value)
            };
            found.iter().map(value).collect::<Vec<_>>()
        });
        assert_eq!(some_values, all_values);
        assert!(some.type_by_name::<Struct<'_>>("bio").is_none());
    }
}
