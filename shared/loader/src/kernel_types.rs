//! The kernel's types as far as a BPF object names them.
//!
//! libbpf looks for each type that an object names among all that the kernel has, some
//! 150,000, which takes it longer than all else that it does. Among the few hundred of
//! these names, and what they are made of, it has them at once.
//!
//! The format is that of the kernel's Documentation/bpf/btf.rst.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};

/// All types of the kernel.
const KERNEL: &str = "/sys/kernel/btf/vmlinux";
/// The only module of which an object names types, where it is one: before 6.4 it can be.
/// libbpf looks in modules only if it looks among all types.
const MODULE: &str = "/sys/kernel/btf/unix";

const MAGIC: u16 = 0xeb9f;
/// `struct btf_header`.
const HEADER: usize = 24;
/// `struct btf_type`.
const TYPE: usize = 12;

// BTF_KIND_* of include/uapi/linux/btf.h.
const INT: u32 = 1;
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const FORWARD: u32 = 7;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
const FUNCTION: u32 = 12;
const FUNCTION_PROTOTYPE: u32 = 13;
const VARIABLE: u32 = 14;
const SECTION: u32 = 15;
const FLOAT: u32 = 16;
const DECLARATION_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM64: u32 = 19;

/// A file of types, in memory.
pub(crate) struct KernelTypes(OwnedFd);

impl KernelTypes {
    /// Those that have one of these names. None where none is needed, or something is
    /// there that is not known: then whoever does need them looks among all.
    pub(crate) fn named(names: &[&str]) -> Option<KernelTypes> {
        if names.is_empty() || Path::new(MODULE).exists() {
            return None;
        }
        let some = some_of(&fs::read(KERNEL).ok()?, names)?;
        let file = memfd_create("kernel-types", MemfdFlags::CLOEXEC).ok()?;
        let mut file = fs::File::from(file);
        file.write_all(&some).ok()?;
        Some(KernelTypes(file.into()))
    }

    /// Where it is for who opens it in this process.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

/// Of `types` those that have one of `names`, and what is inside of them. What they point
/// to is void.
fn some_of(types: &[u8], names: &[&str]) -> Option<Vec<u8>> {
    let all = Types::read(types)?;
    let mut renumbered = Renumbered::choose(&all, names)?;
    let mut section = Vec::new();
    for id in renumbered.chosen() {
        renumbered.write(&all, id, &mut section)?;
    }
    let lengths = [0, section.len(), section.len(), all.strings.len()];
    let mut file = Vec::with_capacity(HEADER + section.len() + all.strings.len());
    file.extend_from_slice(types.get(..4)?);
    for number in [HEADER].into_iter().chain(lengths) {
        file.extend_from_slice(&u32::try_from(number).ok()?.to_ne_bytes());
    }
    file.extend_from_slice(&section);
    file.extend_from_slice(all.strings);
    Some(file)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// Types, by ID.
struct Types<'a> {
    bytes: &'a [u8],
    /// Where each begins; the first is void, which is not there.
    places: Vec<usize>,
    strings: &'a [u8],
}

/// One of them.
struct Type<'a> {
    kind: u32,
    name: usize,
    /// Its members, or whatever a kind has as many of.
    parts: usize,
    /// All of it.
    bytes: &'a [u8],
}

impl<'a> Types<'a> {
    fn read(file: &'a [u8]) -> Option<Types<'a>> {
        let magic = u16::from_ne_bytes(file.get(..2)?.try_into().ok()?);
        let header = |at| number(file, at).and_then(|value| usize::try_from(value).ok());
        let content = file.get(header(4)?..)?;
        let part = |offset: usize, length: usize| content.get(offset..offset.checked_add(length)?);
        let mut types = Types {
            bytes: part(header(8)?, header(12)?)?,
            places: vec![0],
            strings: part(header(16)?, header(20)?)?,
        };
        let mut at = 0;
        while at < types.bytes.len() {
            types.places.push(at);
            at += types.at(at)?.bytes.len();
        }
        (magic == MAGIC).then_some(types)
    }

    fn at(&self, place: usize) -> Option<Type<'a>> {
        let bytes = self.bytes.get(place..)?;
        let info = number(bytes, 4)?;
        let (kind, parts) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
        let length = match kind {
            POINTER | FORWARD | TYPEDEF | VOLATILE | CONST | RESTRICT | FUNCTION | FLOAT
            | TYPE_TAG => 0,
            INT | VARIABLE | DECLARATION_TAG => 4,
            ARRAY => 12,
            STRUCT | UNION | SECTION | ENUM64 => 12 * parts,
            ENUM | FUNCTION_PROTOTYPE => 8 * parts,
            _ => return None,
        };
        Some(Type {
            kind,
            name: number(bytes, 0)? as usize,
            parts,
            bytes: bytes.get(..TYPE + length)?,
        })
    }

    fn get(&self, id: u32) -> Option<Type<'a>> {
        self.at(*self.places.get(id as usize).filter(|_| id > 0)?)
    }

    /// The name of a type less what tells two apart.
    fn name(&self, found: &Type<'_>) -> Option<&'a [u8]> {
        let name = self.strings.get(found.name..)?;
        let end = name.iter().position(|&byte| byte == 0)?;
        let name = &name[..end];
        let flavor = name.windows(3).position(|three| three == b"___");
        Some(&name[..flavor.unwrap_or(end)])
    }
}

impl Type<'_> {
    /// Where in it the IDs are of what is inside of it.
    fn references(&self) -> impl Iterator<Item = usize> + use<> {
        /// Of what has one kind of: behind the name and the kind.
        const REFERENT: usize = 8;
        let (first, step, count) = match self.kind {
            TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG => (REFERENT, 1, 1),
            // Of an element, and of its index.
            ARRAY => (TYPE, 4, 2),
            // Name, ID, offset.
            STRUCT | UNION => (TYPE + 4, 12, self.parts),
            _ => (0, 1, 0),
        };
        (0..count).map(move |index| first + step * index)
    }
}

/// The IDs that those have which are chosen; 0 for others.
struct Renumbered(Vec<u32>);

impl Renumbered {
    fn choose(all: &Types<'_>, names: &[&str]) -> Option<Renumbered> {
        let names: HashSet<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        let mut is_chosen = vec![false; all.places.len()];
        let mut open = Vec::new();
        for (id, place) in (0..).zip(&all.places).skip(1) {
            let found = all.at(*place)?;
            let is_one = matches!(found.kind, STRUCT | UNION | ENUM | ENUM64);
            if is_one && names.contains(all.name(&found)?) {
                open.push(id);
            }
        }
        while let Some(id) = open.pop() {
            let is_new = !std::mem::replace(is_chosen.get_mut(id as usize)?, true);
            if id == 0 || !is_new {
                continue;
            }
            let found = all.get(id)?;
            for at in found.references() {
                open.push(number(found.bytes, at)?);
            }
        }
        is_chosen[0] = false;
        let mut ids = 1..;
        let renumber = |is_chosen: &bool| is_chosen.then(|| ids.next()).flatten().unwrap_or(0);
        Some(Renumbered(is_chosen.iter().map(renumber).collect()))
    }

    /// Their old IDs, in order.
    fn chosen(&self) -> Vec<u32> {
        let ids = (0..).zip(&self.0);
        ids.filter_map(|(id, new)| (*new > 0).then_some(id))
            .collect()
    }

    fn write(&mut self, all: &Types<'_>, id: u32, to: &mut Vec<u8>) -> Option<()> {
        let found = all.get(id)?;
        let start = to.len();
        to.extend_from_slice(found.bytes);
        let mut set = |at: usize, id: u32| -> Option<()> {
            let word = to.get_mut(start + at..start + at + 4)?;
            word.copy_from_slice(&id.to_ne_bytes());
            Some(())
        };
        if found.kind == POINTER {
            set(8, 0)?;
        }
        for at in found.references() {
            let old = number(found.bytes, at)?;
            set(at, *self.0.get(old as usize)?)?;
        }
        Some(())
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

    #[test]
    fn damaged_types_are_no_types() {
        let mut bytes = fs::read(KERNEL).unwrap();
        assert!(some_of(&bytes, &NAMES).is_some());
        for length in (0..bytes.len()).step_by(bytes.len() / 50) {
            assert!(some_of(&bytes[..length], &NAMES).is_none(), "{length}");
        }
        // A kind that no kernel has yet: the last five bits.
        let first = HEADER + 7;
        bytes[first] |= 0x1f;
        assert!(some_of(&bytes, &NAMES).is_none());
    }

    #[test]
    fn a_reference_to_nowhere_is_refused() {
        // A struct with a member of a type that is not there, and one of its own.
        for (reference, is_read) in [(1_u32, true), (2, false), (u32::MAX, false)] {
            let mut file = Vec::new();
            file.extend_from_slice(&[0x9f, 0xeb, 1, 0]);
            let section = [1, STRUCT << 24 | 1, 8, 0, reference, 0_u32];
            let header = [24, 0, 24, 24, 4_u32];
            for word in header.iter().chain(&section) {
                file.extend_from_slice(&word.to_ne_bytes());
            }
            file.extend_from_slice(b"\0ab\0");
            assert_eq!(some_of(&file, &["ab"]).is_some(), is_read, "{reference}");
        }
    }
}
