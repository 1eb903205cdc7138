//! Makes a file of some types and of the types that they need.
//!
//! Both files have the format of the kernel's Documentation/bpf/btf.rst.

use std::collections::{HashMap, HashSet};

const MAGIC: u16 = 0xeb9f;
/// Size of `struct btf_header`.
const HEADER: usize = 24;
/// Size of `struct btf_type`.
const TYPE: usize = 12;
/// Offset, within a type, of the ID of the type that it refers to, for kinds that refer to one
/// type.
const REFERENT: usize = 8;

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

/// Unused bits of the word with the kind and the number of parts.
const UNUSED: u32 = 0x60ff_0000;

/// Makes a file of the types that have one of `names`, and of the types of their members. Pointers
/// become pointers to void. Returns `None` if the format of `types` is unknown.
pub(super) fn some_of(types: &[u8], names: &[&str]) -> Option<Vec<u8>> {
    let all = Types::read(types)?;
    let renumbered = Renumbered::choose(&all, names)?;
    let mut section = Vec::new();
    let mut strings = Strings::default();
    for id in renumbered.chosen() {
        renumbered.write(&all, id, &mut section, &mut strings)?;
    }
    let lengths = [0, section.len(), section.len(), strings.bytes.len()];
    let mut file = Vec::with_capacity(HEADER + section.len() + strings.bytes.len());
    file.extend_from_slice(types.get(..4)?);
    for number in [HEADER].into_iter().chain(lengths) {
        file.extend_from_slice(&u32::try_from(number).ok()?.to_ne_bytes());
    }
    file.extend_from_slice(&section);
    file.extend_from_slice(&strings.bytes);
    Some(file)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// All types of a file, by ID.
struct Types<'a> {
    bytes: &'a [u8],
    /// Start of each type in `bytes`. The first type is void, which has no bytes.
    places: Vec<usize>,
    strings: &'a [u8],
}

/// One type of a file.
struct Type<'a> {
    kind: u32,
    /// Number of members, or of what the kind has instead.
    parts: usize,
    /// All bytes of the type.
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
        if info & UNUSED != 0 {
            return None;
        }
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
            parts,
            bytes: bytes.get(..TYPE + length)?,
        })
    }

    fn get(&self, id: u32) -> Option<Type<'a>> {
        self.at(*self.places.get(id as usize)?)
    }

    fn string(&self, offset: u32) -> Option<&'a [u8]> {
        let string = self.strings.get(offset as usize..)?;
        Some(&string[..string.iter().position(|&byte| byte == 0)?])
    }
}

impl Type<'_> {
    /// Returns the offsets, within the type, of its name and of the names of its parts.
    fn names(&self) -> impl Iterator<Item = usize> + use<> {
        let (step, count) = match self.kind {
            STRUCT | UNION | ENUM64 => (12, self.parts),
            ENUM => (8, self.parts),
            _ => (1, 0),
        };
        [0].into_iter()
            .chain((0..count).map(move |index| TYPE + step * index))
    }

    /// Returns the offsets, within the type, of the IDs of the types that it contains.
    fn references(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, step, count) = match self.kind {
            TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG => (REFERENT, 1, 1),
            // The ID of the element type, and the ID of the index type.
            ARRAY => (TYPE, 4, 2),
            // Each member has a name, the ID of its type, and an offset.
            STRUCT | UNION => (TYPE + 4, 12, self.parts),
            _ => (0, 1, 0),
        };
        (0..count).map(move |index| first + step * index)
    }
}

/// New IDs of the chosen types, by their old IDs; 0 for the others.
struct Renumbered(Vec<u32>);

impl Renumbered {
    fn choose(all: &Types<'_>, names: &[&str]) -> Option<Renumbered> {
        let names: HashSet<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        let mut is_chosen = vec![false; all.places.len()];
        let mut open = Vec::new();
        for (id, place) in (0..).zip(&all.places).skip(1) {
            let found = all.at(*place)?;
            let is_one = matches!(found.kind, STRUCT | UNION | ENUM | ENUM64);
            if is_one && names.contains(without_flavor(all.string(number(found.bytes, 0)?)?)) {
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

    /// Returns the old IDs of the chosen types, in ascending order.
    fn chosen(&self) -> Vec<u32> {
        let ids = (0..).zip(&self.0);
        ids.filter_map(|(id, new)| (*new > 0).then_some(id))
            .collect()
    }

    fn write(
        &self,
        all: &Types<'_>,
        id: u32,
        to: &mut Vec<u8>,
        strings: &mut Strings,
    ) -> Option<()> {
        let found = all.get(id)?;
        let start = to.len();
        to.extend_from_slice(found.bytes);
        let mut set = |at: usize, value: u32| -> Option<()> {
            let word = to.get_mut(start + at..start + at + 4)?;
            word.copy_from_slice(&value.to_ne_bytes());
            Some(())
        };
        if found.kind == POINTER {
            set(REFERENT, 0)?;
        }
        for at in found.references() {
            let old = number(found.bytes, at)?;
            set(at, *self.0.get(old as usize)?)?;
        }
        for at in found.names() {
            set(at, strings.copy(all, number(found.bytes, at)?)?)?;
        }
        Some(())
    }
}

/// Copied names of types, and the new offset of each name by its old one.
struct Strings {
    bytes: Vec<u8>,
    offsets: HashMap<u32, u32>,
}

impl Default for Strings {
    fn default() -> Strings {
        // The string section begins with an empty name.
        Strings {
            bytes: vec![0],
            offsets: HashMap::from([(0, 0)]),
        }
    }
}

impl Strings {
    /// Copies the name at offset `old` from `all`. Returns its new offset.
    fn copy(&mut self, all: &Types<'_>, old: u32) -> Option<u32> {
        if let Some(offset) = self.offsets.get(&old) {
            return Some(*offset);
        }
        let offset = u32::try_from(self.bytes.len()).ok()?;
        self.bytes.extend_from_slice(all.string(old)?);
        self.bytes.push(0);
        self.offsets.insert(old, offset);
        Some(offset)
    }
}

/// Returns a name without its flavor, which is a suffix that begins with `___`.
fn without_flavor(name: &[u8]) -> &[u8] {
    let flavor = name.windows(3).position(|three| three == b"___");
    &name[..flavor.unwrap_or(name.len())]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    const NAMES: [&str; 2] = ["task_struct", "bpf_func_id"];

    #[test]
    fn damaged_types_are_no_types() {
        let mut bytes = fs::read(super::super::KERNEL).unwrap();
        assert!(some_of(&bytes, &NAMES).is_some());
        for length in (0..bytes.len()).step_by(bytes.len() / 50) {
            assert!(some_of(&bytes[..length], &NAMES).is_none(), "{length}");
        }
        // The last five bits of this byte are the kind. No kernel has this kind yet.
        let first = HEADER + 7;
        bytes[first] |= 0x1f;
        assert!(some_of(&bytes, &NAMES).is_none());
    }

    #[test]
    fn a_reference_to_nowhere_is_refused() {
        // The member's type is the struct itself in the first file, and a missing type in the
        // others.
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
