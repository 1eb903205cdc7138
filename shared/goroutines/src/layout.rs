//! Offsets of the fields of `runtime.g`, from the debug information of the program.

use std::collections::HashMap;

use elf::{Elf, Source};
use gimli::{Dwarf, EndianSlice, LittleEndian, Unit};

/// Maximum size of the decompressed debug information, in bytes.
const MAX_DEBUG_BYTES: u64 = 1 << 28;
/// Maximum offset of a field, in bytes. `runtime.g` has about 400 bytes.
const MAX_OFFSET: u64 = 4096;

/// Offsets in `runtime.g`, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) stack_low: usize,
    pub(crate) stack_high: usize,
    pub(crate) sp: usize,
    pub(crate) pc: usize,
    /// Address of the goroutine itself, which validates the layout.
    pub(crate) itself: usize,
    pub(crate) bp: usize,
    pub(crate) status: usize,
    pub(crate) id: usize,
    pub(crate) reason: usize,
    pub(crate) creator: usize,
}

type Fields = HashMap<String, u64>;
type Slice<'b> = EndianSlice<'b, LittleEndian>;

impl Layout {
    /// Reads the layout from the debug information; `None` if this has no such type or field.
    pub(crate) fn read<S: Source>(elf: &Elf<S>) -> Option<Layout> {
        let mut room = MAX_DEBUG_BYTES;
        let mut contents = |name| elf.contents(name, &mut room).ok();
        let sections = [
            (".debug_info", contents(".debug_info")?),
            (".debug_abbrev", contents(".debug_abbrev")?),
            (".debug_str", contents(".debug_str")?),
            (".debug_str_offsets", contents(".debug_str_offsets")?),
            (".debug_addr", contents(".debug_addr")?),
            // gimli reads the header of the line table of each unit.
            (".debug_line", contents(".debug_line")?),
            (".debug_line_str", contents(".debug_line_str")?),
        ];
        let dwarf = Dwarf::load(|id| {
            let section = sections.iter().find(|(name, _)| *name == id.name());
            let bytes = section.map_or(&[][..], |(_, bytes)| bytes);
            Ok::<_, gimli::Error>(EndianSlice::new(bytes, LittleEndian))
        });
        let dwarf = dwarf.ok()?;
        let mut structures: HashMap<&str, Fields> = HashMap::new();
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            let Ok(unit) = dwarf.unit(header) else {
                continue;
            };
            read_structures(&dwarf, &unit, &mut structures);
            if structures.len() == STRUCTURES.len() {
                break;
            }
        }
        Layout::of_structures(&structures)
    }

    fn of_structures(structures: &HashMap<&str, Fields>) -> Option<Layout> {
        let field = |structure: &str, name: &str| {
            let offset = *structures.get(structure)?.get(name)?;
            (offset < MAX_OFFSET).then_some(offset as usize)
        };
        let stack = field("runtime.g", "stack")?;
        let saved = field("runtime.g", "sched")?;
        Some(Layout {
            stack_low: stack + field("runtime.stack", "lo")?,
            stack_high: stack + field("runtime.stack", "hi")?,
            sp: saved + field("runtime.gobuf", "sp")?,
            pc: saved + field("runtime.gobuf", "pc")?,
            itself: saved + field("runtime.gobuf", "g")?,
            bp: saved + field("runtime.gobuf", "bp")?,
            status: field("runtime.g", "atomicstatus")?,
            id: field("runtime.g", "goid")?,
            reason: field("runtime.g", "waitreason")?,
            creator: field("runtime.g", "gopc")?,
        })
    }

    /// Returns the number of bytes of a goroutine that contain all fields.
    pub(crate) fn size(&self) -> usize {
        let fields = [
            self.stack_low,
            self.stack_high,
            self.sp,
            self.pc,
            self.itself,
            self.bp,
            self.status,
            self.id,
            self.reason,
            self.creator,
        ];
        fields.into_iter().max().unwrap_or(0) + 8
    }
}

const STRUCTURES: [&str; 3] = ["runtime.g", "runtime.gobuf", "runtime.stack"];

/// Adds the fields of the wanted structures that a unit has.
fn read_structures(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    structures: &mut HashMap<&str, Fields>,
) {
    let mut entries = unit.entries();
    let mut current: Option<(&str, isize)> = None;
    while let Ok(Some(entry)) = entries.next_dfs() {
        let name = || {
            let name = entry.attr_value(gimli::DW_AT_name)?;
            let name = dwarf.attr_string(unit, name).ok()?;
            std::str::from_utf8(name.slice()).ok()
        };
        match entry.tag() {
            gimli::DW_TAG_structure_type => {
                let wanted =
                    name().and_then(|name| STRUCTURES.into_iter().find(|wanted| *wanted == name));
                current = wanted.map(|wanted| (wanted, entry.depth()));
                if let Some(wanted) = wanted {
                    structures.entry(wanted).or_default();
                }
            }
            gimli::DW_TAG_member => {
                let offset = entry
                    .attr(gimli::DW_AT_data_member_location)
                    .and_then(gimli::Attribute::udata_value);
                if let (Some((structure, depth)), Some(name), Some(offset)) =
                    (current, name(), offset)
                    && entry.depth() == depth + 1
                {
                    let fields = structures.entry(structure).or_default();
                    fields.insert(name.to_owned(), offset);
                }
            }
            _ => current = current.filter(|(_, depth)| entry.depth() > *depth),
        }
    }
}
