//! The kernel's types as far as a BPF object names them.
//!
//! libbpf looks for each type that an object names among all that the kernel has, some
//! 150,000, which takes it longer than all else that it does. Among the few hundred of
//! these names, and what they are made of, it has them at once.

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

/// All types of the kernel.
const KERNEL: &str = "/sys/kernel/btf/vmlinux";
/// The only module of which an object names types, where it is one: before 6.4 it can be.
/// libbpf looks in modules only if it looks among all types.
const MODULE: &str = "/sys/kernel/btf/unix";

/// A file of types, in memory.
pub(crate) struct KernelTypes(OwnedFd);

impl KernelTypes {
    /// Those that have one of these names. None where none is needed, or something is
    /// there that is not known: then whoever does need them looks among all.
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

    /// Where it is for who opens it in this process.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

/// A file that cannot be written to, without a copy of it.
struct Mapped {
    start: NonNull<u8>,
    length: usize,
}

impl Mapped {
    /// None where the kernel cannot map it: this one since 6.16.
    fn whole(file: &File) -> Option<Mapped> {
        let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
        // SAFETY: a new mapping, wherever the kernel has room for it.
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
        // SAFETY: mapped with this length, as long as this lives; the kernel's types are
        // as they are.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing else refers to it.
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

    /// All members of a struct and of what is inside of it: the name, the kind of the
    /// type, and where it is.
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
