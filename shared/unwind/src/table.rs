//! Unwind table of one file.

use crate::rule::Rule;

/// Number of addresses in one page of a table.
pub const PAGE_SIZE: u64 = 1 << 16;

/// Rules of one ELF file, by the virtual addresses that its program headers give its code.
///
/// A row is valid from its address up to the address of the next row. A row is one word: the low 16
/// bits of the address, and below them the index of its rule. Each page of 64 KiB has its own rows,
/// in ascending order. Every page with rows begins with a row for its first address, so a search
/// never leaves its page.
/// page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Address of the first page, a multiple of [`PAGE_SIZE`].
    pub base: u64,
    /// Position of the rows of each page. Pages without code have no rows.
    pub pages: Vec<Page>,
    /// All rows: `(address & 0xffff) << 16 | rule`.
    pub rows: Vec<u32>,
    /// Rules that the rows refer to, without duplicates.
    pub rules: Vec<Rule>,
}

/// Position of the rows of one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Index of the first row.
    pub first: u32,
    /// Number of rows, at most 65,535.
    pub count: u32,
}

impl Table {
    /// Returns the rule for the instruction at `address`.
    pub fn rule(&self, address: u64) -> Rule {
        let find = || {
            let offset = address.checked_sub(self.base)?;
            let page = self.pages.get(usize::try_from(offset / PAGE_SIZE).ok()?)?;
            let rows = self
                .rows
                .get(page.first as usize..)?
                .get(..page.count as usize)?;
            let key = ((offset % PAGE_SIZE) as u32) << 16 | 0xffff;
            let row = rows[..rows.partition_point(|&row| row <= key)].last()?;
            self.rules.get((row & 0xffff) as usize).copied()
        };
        find().unwrap_or(Rule::NONE)
    }

    /// Returns the size of the table in memory, in bytes.
    pub fn size(&self) -> usize {
        size_of_val(&*self.pages) + size_of_val(&*self.rows) + size_of_val(&*self.rules)
    }
}
