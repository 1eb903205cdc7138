//! Builds the unwind [`Table`] of an ELF image.

mod contexts;
mod go;
mod image;
mod pages;
mod uncovered;

use std::ops::Range;

use elf::{Elf, Segment, Source};

use crate::arch;
use crate::build::pages::{Pages, ROW_LIMIT};
use crate::cfi::Frames;
use crate::error::Error;
use crate::ranges::{From, Ready, Spans};
use crate::rule::Rule;
use crate::table::Table;

/// Unwind table of an ELF image, with facts about it.
#[derive(Clone, Debug, Default)]
pub struct Built {
    /// Rules by virtual address.
    pub table: Table,
    /// Segments with the code that the rules describe.
    pub segments: Vec<Segment>,
    /// Counts from the build of the table.
    pub notes: Notes,
}

/// Counts from the build of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Number of frame descriptions in `.eh_frame` and `.debug_frame`.
    pub descriptions: u64,
    /// Number of descriptions with invalid bytes. They are left out, completely or from some
    /// instruction on.
    pub unreadable: u64,
}

impl Built {
    /// Returns the virtual address of the code at an offset in the file. A mapping begins at the
    /// page in which a segment begins. Offsets in that page before the segment therefore also
    /// belong to the segment.
    pub fn address(&self, offset: u64) -> Option<u64> {
        let find = |slack: u64| {
            self.segments.iter().find_map(|segment| {
                let from = segment.offset - segment.offset % slack;
                let end = segment.offset.checked_add(segment.size)?;
                let back = segment.offset - from;
                (from..end).contains(&offset).then(|| {
                    segment
                        .address
                        .checked_sub(back)?
                        .checked_add(offset - from)
                })?
            })
        };
        find(1).or_else(|| find(elf::layout::PAGE))
    }
}

/// Builds the table of an ELF image for this architecture. The rules come from `.eh_frame`, and
/// from `.debug_frame` where `.eh_frame` has none. An image without both gives a table without
/// rows.
///
/// # Errors
/// The image cannot be read, is for another processor, or exceeds a limit. An attacker may have
/// made the image to exhaust its reader.
pub fn build(source: &(impl Source + ?Sized)) -> Result<Built, Error> {
    let elf = image::read(source)?;
    let segments = image::code_segments(&elf)?;
    let code: Vec<Range<u64>> = segments
        .iter()
        .map(|segment| segment.address..segment.address.saturating_add(segment.size))
        .collect();

    let (address, eh_frame) = image::eh_frame(&elf)?;
    let debug_frame = match image::debug_frame(&elf) {
        // Debuggers use .debug_frame; programs run by .eh_frame.
        Err(_) if !eh_frame.is_empty() => Vec::new(),
        Ok(None) if eh_frame.is_empty() => image::mini_debug_frame(&elf)?,
        found => found?.unwrap_or_default(),
    };
    let mut eh_frame = Frames::eh_frame(&eh_frame, address);
    let mut debug_frame = Frames::debug_frame(&debug_frame);

    let mut spans = Spans::default();
    let mut ready = Vec::new();
    let mut fill = |spans: &mut Spans, more: Vec<Ready>| {
        let numbered = more.iter().zip(ready.len() as u32..);
        spans.fill(numbered.map(Ready::span).collect(), &code);
        ready.extend(more);
    };
    fill(&mut spans, go::switches(&elf));
    fill(&mut spans, contexts::beginnings(&elf));
    spans.fill(eh_frame.spans()?, &code);
    spans.fill(debug_frame.spans()?, &code);
    fill(&mut spans, linkage_tables(&elf));
    let gaps = uncovered::gaps(&elf, &spans);
    let analysed = gaps.into_iter().map(|gap| Ready {
        rows: gap.rows(elf.header().entry),
        range: gap.range,
    });
    fill(&mut spans, analysed.collect());

    let mut left = arch::CORRECTED_CODE_LIMIT;
    let mut code = |range: Range<u64>| {
        let size = range.end.checked_sub(range.start)?;
        left = left.checked_sub(size)?;
        let offset = elf.segments().offset(range.start, size)?;
        elf.bytes("code", offset, size).ok()
    };
    let mut pages = Pages::new(spans.start());
    let mut rows = Vec::new();
    // End of the code of the previous span, and the last rule there.
    let mut before = (0, Rule::NONE);
    for span in spans.iter() {
        rows.clear();
        let mut emit = |address, rule| {
            rows.push((address, rule));
            Error::limit("rows of a function", rows.len() as u64, ROW_LIMIT)
        };
        match span.from {
            From::EhFrame(offset) => eh_frame.rows(span, offset, &mut emit)?,
            From::DebugFrame(offset) => debug_frame.rows(span, offset, &mut emit)?,
            From::Ready(index) => {
                for &(address, rule) in &ready[index as usize].rows {
                    if address < span.end {
                        emit(address.max(span.start), rule)?;
                    }
                }
            }
        }
        arch::correct_rows(&mut rows, &mut code);
        if rows.first() == Some(&(span.start, Rule::ROOT))
            && let Some(rule) = arch::rule_of_clone(before, span.start, &mut code)
        {
            pages.push(before.0, rule)?;
        }
        for &(address, rule) in &rows {
            pages.push(address, rule)?;
        }
        pages.push(span.end, Rule::NONE)?;
        before = (span.end, rows.last().map_or(Rule::NONE, |row| row.1));
    }
    let table = pages.finish()?;
    Ok(Built {
        table,
        segments,
        notes: Notes {
            descriptions: eh_frame.found + debug_frame.found,
            unreadable: eh_frame.unreadable + debug_frame.unreadable,
        },
    })
}

/// Returns the rows of the procedure linkage tables.
fn linkage_tables<S: Source>(elf: &Elf<S>) -> Vec<Ready> {
    let lazy = elf.section(".plt").and_then(|section| {
        let what = "procedure linkage table";
        let code = elf.bytes(what, section.offset, section.size.min(32)).ok()?;
        let rows = arch::lazy_linkage_table(&code, section.address)?;
        Some(Ready {
            range: section.range()?,
            rows,
        })
    });
    let direct = [".plt.got", ".plt.sec", ".iplt"]
        .into_iter()
        .filter_map(|name| {
            let section = elf.section(name)?;
            let rows = arch::direct_linkage_table(section.address);
            Some(Ready {
                range: section.range()?,
                rows,
            })
        });
    lazy.into_iter().chain(direct).collect()
}
