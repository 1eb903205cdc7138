//! From an ELF image to its [`Table`].

pub(crate) mod contexts;
pub(crate) mod go;
pub(crate) mod pages;
pub(crate) mod uncovered;

use std::ops::Range;

use crate::{
    Error, Rule, Source, Table, arch,
    build::pages::{Pages, ROW_LIMIT},
    cfi::Frames,
    file::elf::Elf,
    ranges::{From, Ready, Spans},
};

/// What an ELF image says about its frames.
#[derive(Clone, Debug, Default)]
pub struct Built {
    /// The rules by virtual address.
    pub table: Table,
    /// Where in the file the code is that they are for.
    pub segments: Vec<Segment>,
    /// What was found on the way.
    pub notes: Notes,
}

/// Code in a file: an executable segment (`PT_LOAD`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Virtual address of the byte at `offset`.
    pub address: u64,
    /// Bytes in the file.
    pub size: u64,
}

/// What was found while a table was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Frame descriptions in `.eh_frame` and `.debug_frame`.
    pub descriptions: u64,
    /// Those of which all or the rest has no meaning and was left out.
    pub unreadable: u64,
}

impl Built {
    /// The virtual address of the code at an offset in the file. A mapping
    /// begins at the page that a segment begins in: offsets in that page count
    /// as the segment's, too.
    pub fn address(&self, offset: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
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
        find(1).or_else(|| find(PAGE))
    }
}

/// The table of an ELF image for this architecture, of `.eh_frame` first, and of
/// `.debug_frame` where that has nothing. An image that has neither gives a
/// table without rows.
///
/// # Errors
///
/// If the image cannot be read, is for another processor, or has more of
/// anything than is accepted: it may have been made to exhaust its reader.
pub fn build(source: &(impl Source + ?Sized)) -> Result<Built, Error> {
    let elf = Elf::new(source)?;
    let segments = elf.segments()?;
    let code: Vec<Range<u64>> = segments
        .iter()
        .map(|segment| segment.address..segment.address.saturating_add(segment.size))
        .collect();

    let (address, eh_frame) = eh_frame(&elf)?;
    let debug_frame = match elf.debug_frame() {
        // It is for debuggers; programs run by what .eh_frame says.
        Err(_) if !eh_frame.is_empty() => Vec::new(),
        Ok(None) if eh_frame.is_empty() => mini_debug_frame(&elf)?,
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
        rows: gap.rows(elf.entry),
        range: gap.range,
    });
    fill(&mut spans, analysed.collect());

    let mut left = arch::CORRECTED_CODE_LIMIT;
    let mut code = |range: Range<u64>| {
        let size = range.end.checked_sub(range.start)?;
        left = left.checked_sub(size)?;
        let offset = elf.offset(range.start, size)?;
        elf.read("code", offset, size).ok()
    };
    let mut pages = Pages::new(spans.start());
    let mut rows = Vec::new();
    // Where the code before ends, and its last rule.
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

/// The procedure linkage tables.
fn linkage_tables<S: Source + ?Sized>(elf: &Elf<'_, S>) -> Vec<Ready> {
    let lazy = elf.section(".plt").and_then(|section| {
        let what = "procedure linkage table";
        let code = elf.read(what, section.offset, section.size.min(32)).ok()?;
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

/// `.debug_frame` of the ELF file in `.gnu_debugdata`.
fn mini_debug_frame<S: Source + ?Sized>(elf: &Elf<'_, S>) -> Result<Vec<u8>, Error> {
    match elf.mini_debug_information()? {
        Some(mini) => Ok(Elf::new(&mini)?.debug_frame()?.unwrap_or_default()),
        None => Ok(Vec::new()),
    }
}

/// `.eh_frame` and its address.
fn eh_frame<S: Source + ?Sized>(elf: &Elf<'_, S>) -> Result<(u64, Vec<u8>), Error> {
    match elf.section(".eh_frame") {
        Some(section) => Ok((section.address, elf.contents(".eh_frame", section)?)),
        None => Ok(elf.eh_frame_by_program_header()?.unwrap_or_default()),
    }
}
