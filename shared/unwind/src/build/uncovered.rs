//! Code without call frame information: its addresses, and the symbols in it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use elf::layout::SHF_EXECINSTR;
use elf::{Elf, Section, Source};

use crate::arch::{analyse, find_called};
use crate::ranges::Spans;
use crate::rule::Rule;

/// Minimum size of a gap between two descriptions, in bytes. Smaller gaps only align functions.
const SMALLEST: u64 = 16;
/// Maximum size of such code in a file, in bytes. Such code is a small C library, or the assembly
/// of a large one.
const CODE_LIMIT: u64 = 4 << 20;
/// Maximum size of such code in a file that is mostly described, in bytes. More such code comes
/// from a JIT compiler, such as the builtins of V8. Its frames do not follow the C compiler's
/// conventions, but keep frame pointers.
const PART_LIMIT: u64 = 256 << 10;
/// Maximum number of functions in such code, which is one for every 32 bytes.
const FUNCTION_LIMIT: usize = 1 << 17;
/// Assumed size of the code at the entry point, in bytes, if no symbol gives the size.
const ENTRY_SIZE: u64 = 32;

/// Range of code without a description.
pub(crate) struct Gap {
    /// Virtual addresses.
    pub(crate) range: Range<u64>,
    /// Machine code at these addresses.
    code: Vec<u8>,
    /// Functions that begin in the gap, ascending. A function of unknown size has an empty range.
    functions: Vec<Range<u64>>,
    /// Pieces that compilers moved out of functions.
    parts: Vec<Range<u64>>,
    /// Addresses that code without a description calls or loads.
    called: Rc<BTreeSet<u64>>,
}

/// Symbol of a function.
struct Symbol {
    range: Range<u64>,
    part: bool,
}

/// Returns the gaps in the code that `spans` do not cover, ascending. Returns no gaps if they are
/// so large that the file must be of another kind. In a file that is mostly described, leaves out
/// gaps with code of another kind.
pub(crate) fn gaps<S: Source>(elf: &Elf<S>, spans: &Spans) -> Vec<Gap> {
    let mut found = Vec::new();
    let mut size = 0;
    let mut code = 0;
    let mut end = 0;
    for section in code_sections(elf) {
        let Some(range) = section.range().filter(|range| range.start >= end) else {
            continue;
        };
        end = range.end;
        code = range.end.saturating_sub(range.start).saturating_add(code);
        for gap in spans.gaps(range) {
            let length = gap.end - gap.start;
            if length >= SMALLEST {
                size = length.saturating_add(size);
                if size > CODE_LIMIT {
                    return Vec::new();
                }
                let into = gap.start - section.address;
                found.push((section.offset.wrapping_add(into), gap));
            }
        }
    }
    if found.is_empty() || size > PART_LIMIT && size < code / 2 {
        return Vec::new();
    }
    let symbols = symbols(elf, |address| {
        let index = found.partition_point(|(_, gap)| gap.end <= address);
        found
            .get(index)
            .is_some_and(|(_, gap)| gap.contains(&address))
    });
    let codes = found.into_iter().filter_map(|(offset, gap)| {
        let what = "code without call frame information";
        let code = elf.bytes(what, offset, gap.end - gap.start).ok()?;
        Some((gap, code))
    });
    let codes: Vec<_> = codes.collect();
    let mut called = BTreeSet::new();
    for (gap, code) in &codes {
        find_called(code, gap.start, &mut called);
    }
    let called = Rc::new(called);
    let gaps = codes.into_iter().map(|(gap, code)| {
        let first = symbols.partition_point(|symbol| symbol.range.start < gap.start);
        let within = || {
            symbols[first..]
                .iter()
                .take_while(|symbol| symbol.range.start < gap.end)
        };
        let ranges = |part| {
            let symbols = within().filter(|symbol| symbol.part == part);
            symbols.map(|symbol| symbol.range.clone()).collect()
        };
        Gap {
            functions: ranges(false),
            parts: ranges(true),
            called: Rc::clone(&called),
            code,
            range: gap.clone(),
        }
    });
    gaps.collect()
}

impl Gap {
    /// Returns the rows of the gap. The function at `entry` has no caller, because the kernel
    /// starts it.
    pub(crate) fn rows(&self, entry: u64) -> Vec<(u64, Rule)> {
        let (start, functions) = (self.range.start, &self.functions);
        let rows = analyse(&self.code, start, functions, &self.parts, &self.called);
        if !self.range.contains(&entry) {
            return rows;
        }
        let end = self.entry_end(entry);
        let before = rows.partition_point(|&(address, _)| address < entry);
        let after = rows.partition_point(|&(address, _)| address <= end);
        let in_force = after.checked_sub(1).map_or(Rule::NONE, |last| rows[last].1);
        let root = [(entry, Rule::ROOT), (end, in_force)];
        [&rows[..before], &root, &rows[after..]].concat()
    }

    fn entry_end(&self, entry: u64) -> u64 {
        let first = self
            .functions
            .partition_point(|function| function.start < entry);
        let mut functions = self.functions[first..].iter();
        let end = match functions.next() {
            Some(function) if function.start > entry => function.start,
            Some(function) if !function.is_empty() => return function.end.min(self.range.end),
            _ => functions.next().map_or(self.range.end, |next| next.start),
        };
        end.min(entry.saturating_add(ENTRY_SIZE))
            .min(self.range.end)
    }
}

/// Returns the sections with code, ascending by address.
fn code_sections<S: Source>(elf: &Elf<S>) -> Vec<&Section> {
    let code = |section: &&Section| section.flags & SHF_EXECINSTR != 0 && section.is_in_file();
    let mut sections: Vec<&Section> = elf.sections().iter().filter(code).collect();
    sections.sort_by_key(|section| (section.address, section.size));
    sections
}

/// Returns the symbols of functions at addresses that `wanted` accepts, ascending.
fn symbols<S: Source>(elf: &Elf<S>, wanted: impl Fn(u64) -> bool) -> Vec<Symbol> {
    let mut symbols = Vec::new();
    elf.for_each_function(|name, range| {
        if wanted(range.start) {
            symbols.push(Symbol {
                range,
                part: is_part(name),
            });
        }
    });
    // Of several symbols with one address, the longest is kept.
    symbols.sort_by_key(|symbol| (symbol.range.start, std::cmp::Reverse(symbol.range.end)));
    symbols.dedup_by_key(|symbol| symbol.range.start);
    symbols.truncate(FUNCTION_LIMIT);
    symbols
}

/// Returns whether a name is one that GCC or LLVM gives to a piece that it moves out of a function:
/// `name.cold`, `name.cold.1`.
fn is_part(name: &[u8]) -> bool {
    let without_number = match name.iter().rposition(|byte| !byte.is_ascii_digit()) {
        Some(dot) if name[dot] == b'.' => &name[..dot],
        _ => name,
    };
    without_number.ends_with(b".cold")
}
