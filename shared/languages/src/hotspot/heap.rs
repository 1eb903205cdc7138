//! Objects of Java: their classes, the places of their fields, and strings.
//!
//! A collector can move an object between two reads. Callers therefore check what they read by
//! another way, or read it twice.

use std::collections::HashMap;
use std::sync::Arc;

use super::fields::Fields;
use super::flags::Flags;
use super::layout::Machine;
use super::symbol;
use super::tables::{Tables, read_word};
use crate::language::Pieces;

/// Maximum number of superclasses.
const MAX_SUPERS: usize = 16;
/// Maximum number of characters of a string.
const MAX_CHARACTERS: u32 = 1024;
/// Bits of a mark: the object has a monitor.
const MARK_BITS: u64 = 3;
const MARK_OF_MONITOR: u64 = 2;
/// Bits of a compact header below the class.
const COMPACT_SHIFT: u32 = 42;
/// Types of elements: `BasicType` of globalDefinitions.hpp.
const T_CHAR: u32 = 5;
const T_BYTE: u32 = 8;

/// Way in which a header has the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    /// Address of 8 bytes behind the mark.
    Word,
    /// Compressed address of 4 bytes behind the mark.
    HalfWord,
    /// Compressed address in the highest bits of the mark.
    Compact,
}

/// Compression of an address: `base + (value << shift)`.
#[derive(Clone, Copy, Debug)]
struct Compression {
    base: u64,
    shift: u64,
}

impl Compression {
    fn read(memory: &dyn Pieces, tables: &Tables, owners: &[&str]) -> Option<Compression> {
        let find = |field: &str| {
            let mut names = owners.iter().map(|owner| format!("{owner}{field}"));
            names.find_map(|name| tables.address(&name))
        };
        Some(Compression {
            base: read_word(memory, find("_base")?)?,
            shift: u64::from(read_word(memory, find("_shift")?)? as u32),
        })
    }

    fn expand(self, value: u64) -> Option<u64> {
        if value == 0 || self.shift > 32 {
            return None;
        }
        self.base.checked_add(value.checked_shl(self.shift as u32)?)
    }
}

/// Place of the class in an object, for programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassPlace {
    pub(super) offset: u16,
    pub(super) base: u64,
    pub(super) shift: u16,
    /// True if the object has the address of the class.
    pub(super) is_address: bool,
}

/// Compression of references between objects, for programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReferencePlace {
    pub(super) base: u64,
    pub(super) shift: u16,
    /// True if references are addresses.
    pub(super) is_address: bool,
}

/// Heap of a virtual machine.
#[derive(Clone, Debug)]
pub(super) struct Heap {
    /// Compression of references; `None` if they are addresses.
    references: Option<Compression>,
    classes: Option<Compression>,
    header: Header,
    klass: u16,
    fields: Fields,
    constants: u16,
    super_class: u16,
    layout_helper: u16,
    /// Offset of the mark in a monitor, for compact headers.
    monitor_mark: Option<u16>,
    /// True if references have a color in their low bits.
    is_colored: bool,
    /// True if the collector moves objects while threads run.
    pub(super) moves_any_time: bool,
}

impl Heap {
    /// Returns the heap that the tables and the machine's flags describe.
    pub(super) fn read(memory: &dyn Pieces, tables: &Tables, major: u32) -> Option<Heap> {
        let field = |name: &str| tables.offset(&[name]);
        let flags = Flags::read(memory, tables)?;
        let is_set = |name: &str| flags.get(name).unwrap_or(false);
        let compresses = flags.get("UseCompressedOops")?;
        let is_compact = is_set("UseCompactObjectHeaders");
        let short = flags.get("UseCompressedClassPointers").unwrap_or(true);
        let is_z = is_set("UseZGC");
        let references = Compression::read(
            memory,
            tables,
            &[
                "CompressedOops::",
                "CompressedOops::_narrow_oop.",
                "Universe::_narrow_oop.",
            ],
        );
        let classes = Compression::read(
            memory,
            tables,
            &[
                "CompressedKlassPointers::",
                "CompressedKlassPointers::_narrow_klass.",
                "Universe::_narrow_klass.",
            ],
        );
        let fields = Fields::new(tables)?;
        let (header, klass) = match (is_compact, short) {
            (true, _) => (Header::Compact, 0),
            (false, true) => (
                Header::HalfWord,
                tables.offset(&[
                    "oopDesc::_metadata._compressed_klass",
                    "oopDesc::_compressed_klass",
                ])?,
            ),
            (false, false) => (Header::Word, field("oopDesc::_metadata._klass")?),
        };
        let needs_classes = header != Header::Word;
        // The table of monitors keeps the mark of an object in place.
        let has_table = is_set("UseObjectMonitorTable");
        Some(Heap {
            references: if compresses { Some(references?) } else { None },
            classes: if needs_classes { Some(classes?) } else { None },
            header,
            klass,
            fields,
            constants: field("InstanceKlass::_constants")?,
            super_class: field("Klass::_super")?,
            layout_helper: field("Klass::_layout_helper")?,
            monitor_mark: if has_table {
                None
            } else {
                tables.offset(&["ObjectMonitor::_metadata", "ObjectMonitor::_header"])
            },
            is_colored: is_z && major >= 21 && flags.get("ZGenerational").unwrap_or(major >= 23),
            moves_any_time: is_z || is_set("UseShenandoahGC"),
        })
    }

    /// Returns where an object has its class, if programs can read it.
    pub(super) fn class_place(&self) -> Option<ClassPlace> {
        let classes = match self.header {
            Header::Word => None,
            Header::HalfWord => Some(self.classes?),
            Header::Compact => return None,
        };
        // Programs know no colors.
        (!self.is_colored).then_some(())?;
        Some(ClassPlace {
            offset: self.klass,
            base: classes.map_or(0, |classes| classes.base),
            shift: u16::try_from(classes.map_or(0, |classes| classes.shift)).ok()?,
            is_address: classes.is_none(),
        })
    }

    /// Returns how programs read references; `None` if the collector moves objects while threads
    /// run, or changes references.
    pub(super) fn reference_place(&self) -> Option<ReferencePlace> {
        if self.moves_any_time || self.is_colored {
            return None;
        }
        let compression = self.references;
        Some(ReferencePlace {
            base: compression.map_or(0, |it| it.base),
            shift: u16::try_from(compression.map_or(0, |it| it.shift)).ok()?,
            is_address: compression.is_none(),
        })
    }

    /// Returns the address of an object, from the value of a reference.
    pub(super) fn address(&self, value: u64) -> Option<u64> {
        if value == 0 {
            return None;
        }
        if !self.is_colored {
            return Some(value);
        }
        // Bits 12 to 15 have one color, which says where the address begins (zAddress.hpp).
        let color = value >> 12 & 0xf;
        (color.is_power_of_two()).then(|| value >> (13 + color.trailing_zeros()))
    }

    /// Reads the reference at `at`, and returns the address of the object.
    pub(super) fn reference(&self, memory: &dyn Pieces, at: u64) -> Option<u64> {
        match self.references {
            Some(references) => references.expand(half_word(memory, at)?.into()),
            None => self.address(read_word(memory, at)?),
        }
    }

    /// Returns the class of an object.
    pub(super) fn class(&self, memory: &dyn Pieces, object: u64) -> Option<u64> {
        let at = object.checked_add(self.klass.into())?;
        let class = match self.header {
            Header::Word => return read_word(memory, at).filter(|class| *class != 0),
            Header::HalfWord => half_word(memory, at)?.into(),
            Header::Compact => {
                let mut mark = read_word(memory, object)?;
                if let Some(in_monitor) = self.monitor_mark
                    && mark & MARK_BITS == MARK_OF_MONITOR
                {
                    let monitor = mark & !MARK_BITS;
                    mark = read_word(memory, monitor.checked_add(in_monitor.into())?)?;
                }
                mark >> COMPACT_SHIFT
            }
        };
        self.classes?.expand(class)
    }

    /// Returns the name of a class, such as `java/lang/Thread`.
    pub(super) fn class_name(memory: &dyn Pieces, machine: &Machine, class: u64) -> Option<String> {
        let name = read_word(memory, class.checked_add(machine.layout.class_name.into())?)?;
        symbol::read(memory, machine, name).filter(|name| !name.is_empty())
    }

    fn super_class(&self, memory: &dyn Pieces, class: u64) -> Option<u64> {
        let at = class.checked_add(self.super_class.into())?;
        read_word(memory, at).filter(|class| *class != 0)
    }

    /// Returns the class named `name` among `class` and its superclasses.
    pub(super) fn ancestor(
        &self,
        memory: &dyn Pieces,
        machine: &Machine,
        class: u64,
        name: &str,
    ) -> Option<u64> {
        let mut class = class;
        for _ in 0..MAX_SUPERS {
            if Heap::class_name(memory, machine, class)? == name {
                return Some(class);
            }
            class = self.super_class(memory, class)?;
        }
        None
    }

    /// Returns the offsets of the fields that `class` itself declares for each object, by name.
    fn declared(
        &self,
        memory: &dyn Pieces,
        machine: &Machine,
        class: u64,
    ) -> Option<HashMap<String, u32>> {
        let pool = read_word(memory, class.checked_add(self.constants.into())?)?;
        let name = |index: u32| {
            let index = u64::from(u16::try_from(index).ok()?);
            let entries = pool.checked_add(machine.pool_bytes.into())?;
            let symbol = read_word(memory, entries.checked_add(8 * index)?)?;
            symbol::read(memory, machine, symbol & !1)
        };
        let places = self.fields.places(memory, class, machine.number_base)?;
        let places = places.into_iter();
        places
            .map(|(index, offset)| Some((name(index)?, offset)))
            .collect()
    }
}

/// Reads 4 bytes.
pub(super) fn half_word(memory: &dyn Pieces, address: u64) -> Option<u32> {
    let bytes = memory.bytes(address, 4);
    Some(u32::from_le_bytes(*bytes.first_chunk()?))
}

/// Fields of classes that were looked up.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes(HashMap<u64, Arc<HashMap<String, u32>>>);

/// Maximum number of classes whose fields are kept.
const MAX_CLASSES: usize = 64;

impl Classes {
    /// Returns the offset of a field that `class` declares.
    pub(super) fn field(
        &mut self,
        memory: &dyn Pieces,
        (machine, heap): (&Machine, &Heap),
        class: u64,
        name: &str,
    ) -> Option<u64> {
        if let Some(known) = self.0.get(&class) {
            return known.get(name).map(|offset| u64::from(*offset));
        }
        let fields = Arc::new(heap.declared(memory, machine, class)?);
        if self.0.len() >= MAX_CLASSES {
            self.0.clear();
        }
        let offset = fields.get(name).map(|offset| u64::from(*offset));
        self.0.insert(class, fields);
        offset
    }

    /// Reads a string. Returns `None` if the object at `string` is none, or changes meanwhile.
    pub(super) fn string(
        &mut self,
        memory: &dyn Pieces,
        (machine, heap): (&Machine, &Heap),
        string: u64,
    ) -> Option<String> {
        let class = heap.class(memory, string)?;
        if Heap::class_name(memory, machine, class)? != "java/lang/String" {
            return None;
        }
        let of = (machine, heap);
        let value = self.field(memory, of, class, "value")?;
        let coder = self.field(memory, of, class, "coder");
        let read = || {
            let array = heap.reference(memory, string.checked_add(value)?)?;
            let array_class = heap.class(memory, array)?;
            let helper = array_class.checked_add(heap.layout_helper.into())?;
            let shape = ArrayShape::parse(half_word(memory, helper)?)?;
            let count = half_word(memory, array.checked_add(shape.length)?)?;
            let is_bytes = shape.element == T_BYTE;
            let most = if is_bytes {
                2 * MAX_CHARACTERS
            } else {
                MAX_CHARACTERS
            };
            let size = if is_bytes { 1 } else { 2 };
            let bytes = count.min(most) as usize * size;
            let bytes = Some(memory.bytes(array.checked_add(shape.start)?, bytes))
                .filter(|read| read.len() == bytes)?;
            let is_wide = match coder {
                None if is_bytes => return None,
                None => true,
                Some(coder) => *memory.bytes(string.checked_add(coder)?, 1).first()? != 0,
            };
            Some(if is_wide {
                let (units, _) = bytes.as_chunks::<2>();
                let units: Vec<u16> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
                String::from_utf16_lossy(&units)
            } else {
                bytes.into_iter().map(char::from).collect()
            })
        };
        let text = read()?;
        (read()? == text && heap.class(memory, string)? == class).then_some(text)
    }
}

/// Shape of arrays of bytes or characters.
struct ArrayShape {
    element: u32,
    /// Offsets of the length and of the first element.
    length: u64,
    start: u64,
}

impl ArrayShape {
    /// Parses the description that a class of arrays has (`layout_helper` of klass.hpp).
    fn parse(helper: u32) -> Option<ArrayShape> {
        /// Highest two bits of the description of arrays of numbers.
        const OF_NUMBERS: u32 = 3;
        let start = helper >> 16 & 0xff;
        let element = helper >> 8 & 0xff;
        let is_known = helper >> 30 == OF_NUMBERS && matches!(element, T_BYTE | T_CHAR);
        (is_known && matches!(start, 12 | 16 | 20 | 24)).then(|| ArrayShape {
            element,
            // The class takes a whole word if it is not compressed.
            length: if start == 24 {
                16
            } else {
                u64::from(start) - 4
            },
            start: start.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_arrays_of_bytes_and_characters_are_texts() {
        let of = |tag: u32, start: u32, element: u32| tag << 30 | start << 16 | element << 8;
        let shape = |helper| ArrayShape::parse(helper).map(|it| (it.length, it.start));
        assert_eq!(shape(of(3, 16, T_BYTE)), Some((12, 16)));
        assert_eq!(shape(of(3, 24, T_CHAR)), Some((16, 24)));
        assert_eq!(shape(of(3, 12, T_BYTE)), Some((8, 12)));
        assert_eq!(shape(of(3, 16, 11)), None);
        assert_eq!(shape(of(2, 16, T_BYTE)), None);
        assert_eq!(shape(0), None);
    }
}
