//! Counts the records that addr2line would make from debug information, before it makes them.
//!
//! addr2line makes a record for every unit. For units with a wanted address, it also makes a record
//! for every function and line. Many units or functions may share a table, so a small file can
//! describe any number of records. addr2line also follows nested entries by recursion.

use std::collections::HashSet;
use std::io::{Error, ErrorKind, Result};

use addr2line::gimli::{
    AbbreviationsCacheStrategy, AttributeValue, DebugAbbrevOffset, DebugLineOffset, Dwarf, Reader,
    Section, Unit, UnitHeader, constants,
};

use super::{Skeleton, Slice};
use crate::budget::Allowance;
use crate::naming::wanted::Wanted;

/// Maximum depth of nested entries. Compilers nest them dozens deep.
pub(super) const DEEPEST: isize = 1_000;
/// Minimum of the memory limit for the records of a file, in bytes.
const LEAST_ROOM: u64 = 64 << 20;
/// Allowed memory per byte of debug information, in bytes. With addresses all over a program, C
/// programs take 1.3 to 2 bytes, and Rust programs 3.4 bytes.
const ROOM_FOR_BYTE: u64 = 4;
/// Maximum of the memory limit for the records of a file, in bytes.
const MAX_ROOM: u64 = 1 << 30;

/// Memory that addr2line and gimli take for a unit, in bytes.
const UNIT: u64 = 640;
/// Memory for an abbreviation, in bytes.
const ABBREVIATION: u64 = 128;
/// Memory for an attribute of an abbreviation, in bytes.
const ATTRIBUTE: u64 = 16;
/// Memory for a range of addresses, in bytes.
const RANGE: u64 = 32;
/// Memory for a function, in bytes.
const FUNCTION: u64 = 160;
/// Memory for a line, in bytes.
const LINE: u64 = 24;
/// Memory for each byte of the list of files before lines, in bytes. A file takes at least five
/// bytes of this list.
const FILE_BYTE: u64 = 24;

/// Number of steps between two checks of the CPU time.
const STEPS: usize = 4096;

/// Counter of the records for debug information.
pub(super) struct Count<'a> {
    wanted: &'a Wanted,
    allowance: &'a Allowance,
    /// Remaining memory, in bytes.
    left: u64,
    steps: usize,
}

/// Returns an error only if a limit was exceeded. Invalid data count as far as they were read.
fn keep_quota_error(counted: Result<()>) -> Result<()> {
    match counted {
        Err(error) if error.kind() == ErrorKind::QuotaExceeded => Err(error),
        _ => Ok(()),
    }
}

impl<'a> Count<'a> {
    /// Returns the counter for `size` bytes of debug information.
    pub(super) fn new(size: u64, wanted: &'a Wanted, allowance: &'a Allowance) -> Count<'a> {
        let mut count = Count {
            wanted,
            allowance,
            left: LEAST_ROOM,
            steps: 0,
        };
        count.allow(size);
        count
    }

    /// Adds the memory for `size` bytes of debug information.
    fn allow(&mut self, size: u64) {
        let more = ROOM_FOR_BYTE.saturating_mul(size);
        self.left = self.left.saturating_add(more).min(MAX_ROOM);
    }

    /// Checks the records that addr2line would make from debug information: their memory and the
    /// depth of entries. Reads each shared table of abbreviations only once. Returns the units with
    /// wanted addresses whose entries are in other files.
    ///
    /// # Errors
    /// `QuotaExceeded` if the records take too much memory or the entries nest too deeply. Also any
    /// error of debug information with invalid units.
    pub(super) fn check<'d>(&mut self, dwarf: &mut Dwarf<Slice<'d>>) -> Result<Vec<Skeleton<'d>>> {
        let mut tables = HashSet::new();
        let mut units = dwarf.units();
        while let Some(unit) = units.next().map_err(Error::other)? {
            self.add(UNIT)?;
            if tables.insert(unit.debug_abbrev_offset().0) {
                keep_quota_error(self.abbreviations(dwarf, unit.debug_abbrev_offset()))?;
            }
        }
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        let mut skeletons = Vec::new();
        let mut units = dwarf.units();
        while let Some(unit) = units.next().map_err(Error::other)? {
            // addr2line skips a unit that cannot be read to its end.
            keep_quota_error(self.unit(dwarf, unit, &mut skeletons))?;
        }
        Ok(skeletons)
    }

    /// Checks the entries of a skeleton unit, which are in another file with `size` bytes of debug
    /// information. addr2line reads the first unit there. Returns whether this unit belongs to the
    /// skeleton unit.
    ///
    /// # Errors
    /// Like [`Count::check`].
    pub(super) fn check_split(
        &mut self,
        dwarf: &Dwarf<Slice<'_>>,
        size: u64,
        skeleton: &Skeleton<'_>,
    ) -> Result<bool> {
        self.allow(size);
        let Some(header) = dwarf.units().next().map_err(Error::other)? else {
            return Ok(false);
        };
        self.add(UNIT)?;
        self.abbreviations(dwarf, header.debug_abbrev_offset())?;
        self.files(dwarf, &header)?;
        let mut unit = dwarf.unit(header).map_err(Error::other)?;
        if unit.dwo_id != Some(skeleton.id) {
            return Ok(false);
        }
        unit.copy_relocated_attributes(&skeleton.unit);
        keep_quota_error(self.entries(dwarf, &unit, true))?;
        Ok(true)
    }

    /// Charges this many bytes of memory.
    fn add(&mut self, bytes: u64) -> Result<()> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| {
            let why = "its debug information takes too much memory";
            self.allowance.refuse(why)
        })?;
        self.step(1)
    }

    fn step(&mut self, steps: usize) -> Result<()> {
        self.steps += steps;
        if self.steps >= STEPS {
            self.steps = 0;
            self.allowance.check_time()?;
        }
        Ok(())
    }

    /// Counts the abbreviations of a table. An abbreviation has a code, a tag, whether it has
    /// children, and names and forms of attributes (DWARF 5, section 7.5.3).
    fn abbreviations(&mut self, dwarf: &Dwarf<Slice<'_>>, offset: DebugAbbrevOffset) -> Result<()> {
        let mut table = *dwarf.debug_abbrev.reader();
        table.skip(offset.0).map_err(Error::other)?;
        while table.read_uleb128().map_err(Error::other)? != 0 {
            self.add(ABBREVIATION)?;
            table.read_uleb128().map_err(Error::other)?;
            table.read_u8().map_err(Error::other)?;
            loop {
                let name = table.read_uleb128().map_err(Error::other)?;
                let form = table.read_uleb128().map_err(Error::other)?;
                if (name, form) == (0, 0) {
                    break;
                }
                if form == u64::from(constants::DW_FORM_implicit_const.0) {
                    table.read_sleb128().map_err(Error::other)?;
                }
                self.add(ATTRIBUTE)?;
            }
        }
        Ok(())
    }

    fn unit<'d>(
        &mut self,
        dwarf: &Dwarf<Slice<'d>>,
        header: UnitHeader<Slice<'d>>,
        skeletons: &mut Vec<Skeleton<'d>>,
    ) -> Result<()> {
        self.files(dwarf, &header)?;
        let unit = dwarf.unit(header).map_err(Error::other)?;
        let mut ranges = dwarf.unit_ranges(&unit).map_err(Error::other)?;
        let (mut is_placed, mut is_wanted) = (false, false);
        while let Some(range) = ranges.next().map_err(Error::other)? {
            self.add(RANGE)?;
            is_placed |= range.begin < range.end;
            is_wanted |= self.is_wanted(range.begin, range.end);
        }
        // The addresses of such a unit can only be found in its lines.
        is_wanted |= !is_placed;
        if is_wanted {
            self.lines(dwarf, &unit)?;
        }
        self.entries(dwarf, &unit, is_wanted)?;
        if is_wanted {
            skeletons.extend(Skeleton::new(dwarf, unit));
        }
        Ok(())
    }

    /// Counts the files in the lines of a unit, which gimli reads together with the unit.
    fn files(&mut self, dwarf: &Dwarf<Slice<'_>>, header: &UnitHeader<Slice<'_>>) -> Result<()> {
        let abbreviations = dwarf.abbreviations(header).map_err(Error::other)?;
        let mut entries = (header.entries_raw(&abbreviations, None)).map_err(Error::other)?;
        let Some(root) = entries.read_abbreviation().map_err(Error::other)? else {
            return Ok(());
        };
        for attribute in root.attributes() {
            self.step(1)?;
            let attribute = entries.read_attribute(*attribute).map_err(Error::other)?;
            if attribute.name() == constants::DW_AT_stmt_list
                && let AttributeValue::DebugLineRef(DebugLineOffset(offset)) = attribute.value()
            {
                // The fields follow DWARF 5, section 6.2.4.
                let mut lines = *dwarf.debug_line.reader();
                lines.skip(offset).map_err(Error::other)?;
                let (_, format) = lines.read_initial_length().map_err(Error::other)?;
                if lines.read_u16().map_err(Error::other)? >= 5 {
                    lines.skip(2).map_err(Error::other)?;
                }
                let size = lines.read_length(format).map_err(Error::other)?;
                self.add(FILE_BYTE * size.min(lines.len()) as u64)?;
            }
        }
        Ok(())
    }

    /// Counts the lines of a unit, and the paths of its files.
    fn lines(&mut self, dwarf: &Dwarf<Slice<'_>>, unit: &Unit<Slice<'_>>) -> Result<()> {
        let Some(program) = unit.line_program.clone() else {
            return Ok(());
        };
        let folder = unit.comp_dir.as_ref().map_or(0, |folder| folder.len());
        let header = program.header();
        for file in header.file_names() {
            let directory = file.directory(header).unwrap_or(file.path_name());
            let names = [directory, file.path_name()].map(|name| dwarf.attr_string(unit, name));
            let names = names.iter().flatten().map(|name| name.len());
            self.add((folder + names.sum::<usize>()) as u64)?;
        }
        let mut rows = program.rows();
        while rows.next_row().map_err(Error::other)?.is_some() {
            self.add(LINE)?;
        }
        Ok(())
    }

    /// Counts the functions of a unit with wanted addresses. Also counts the functions inlined into
    /// a function that covers a wanted address. Checks that entries do not nest too deeply.
    fn entries(
        &mut self,
        dwarf: &Dwarf<Slice<'_>>,
        unit: &Unit<Slice<'_>>,
        is_wanted: bool,
    ) -> Result<()> {
        let mut entries = unit.entries_raw(None).map_err(Error::other)?;
        // Depth of the function that covers a wanted address, while its entries are read.
        let mut wanted_function = None;
        while !entries.is_empty() {
            let depth = entries.next_depth();
            if depth > DEEPEST {
                return Err(self
                    .allowance
                    .refuse("its debug information nests too deeply"));
            }
            let Some(entry) = entries.read_abbreviation().map_err(Error::other)? else {
                self.step(1)?;
                continue;
            };
            self.step(1 + entry.attributes().len())?;
            wanted_function = wanted_function.filter(|function| depth > *function);
            let is_read = match entry.tag() {
                constants::DW_TAG_subprogram => is_wanted,
                constants::DW_TAG_inlined_subroutine => wanted_function.is_some(),
                _ => false,
            };
            if !is_read {
                let skipped = entries.skip_attributes(entry.attributes());
                skipped.map_err(Error::other)?;
                continue;
            }
            self.add(FUNCTION)?;
            let mut has_wanted = false;
            let (mut low, mut high) = (None, None);
            for attribute in entry.attributes() {
                let attribute = entries.read_attribute(*attribute).map_err(Error::other)?;
                match attribute.name() {
                    constants::DW_AT_low_pc => {
                        low = dwarf.attr_address(unit, attribute.value()).ok().flatten();
                    }
                    constants::DW_AT_high_pc => high = Some(attribute.value()),
                    constants::DW_AT_ranges => {
                        let Ok(Some(mut ranges)) = dwarf.attr_ranges(unit, attribute.value())
                        else {
                            continue;
                        };
                        while let Some(range) = ranges.next().map_err(Error::other)? {
                            self.add(RANGE)?;
                            has_wanted |= self.is_wanted(range.begin, range.end);
                        }
                    }
                    _ => {}
                }
            }
            if let (Some(low), Some(high)) = (low, high) {
                let end = match high.udata_value() {
                    Some(size) => low.wrapping_add(size),
                    None => dwarf.attr_address(unit, high).ok().flatten().unwrap_or(low),
                };
                has_wanted |= self.is_wanted(low, end);
            }
            if has_wanted {
                wanted_function = wanted_function.or(Some(depth));
            }
        }
        Ok(())
    }

    fn is_wanted(&self, begin: u64, end: u64) -> bool {
        let covered = self.wanted.covered(begin, end.saturating_sub(begin));
        !covered.is_empty()
    }
}
