//! Makes the pages of a [`Table`] from ascending rows.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::error::Error;
use crate::rule::Rule;
use crate::table::{PAGE_SIZE, Page, Table};

/// Maximum number of rows, which take 64 MiB. The largest known libraries have about 4 million
/// rows.
pub(crate) const ROW_LIMIT: u64 = 16 << 20;
/// Maximum number of pages, for 4 GiB of code. The x86-64 code models in use address half of that.
pub(crate) const PAGE_LIMIT: u64 = 1 << 16;
/// Maximum number of different rules. The largest number seen in a file is 785.
pub(crate) const RULE_LIMIT: u64 = 4096;
/// Maximum number of rows in a page.
const PAGE_ROW_LIMIT: u64 = 0xffff;

/// Builder of a [`Table`] from rows of ascending addresses.
pub(crate) struct Pages {
    table: Table,
    indices: HashMap<Rule, u32, RandomState>,
    /// Row that was pushed last. It is not in the table yet, because the next row replaces it if
    /// that has the same address.
    pending: (u64, Rule),
    /// Rule at the end of the table.
    in_force: Rule,
}

impl Pages {
    /// Returns a builder for code from `start` on.
    pub(crate) fn new(start: u64) -> Pages {
        Pages {
            table: Table {
                base: start - start % PAGE_SIZE,
                ..Table::default()
            },
            indices: HashMap::default(),
            pending: (start, Rule::NONE),
            in_force: Rule::NONE,
        }
    }

    /// Adds a row, so that `rule` is valid from `address` on. `address` must not be below the
    /// address of an earlier row. Of several rows for one address, the last one counts.
    pub(crate) fn push(&mut self, address: u64, rule: Rule) -> Result<(), Error> {
        if address > self.pending.0 {
            self.flush()?;
        }
        self.pending = (address, rule);
        Ok(())
    }

    /// Returns the finished table.
    pub(crate) fn finish(mut self) -> Result<Table, Error> {
        self.flush()?;
        Ok(self.table)
    }

    fn flush(&mut self) -> Result<(), Error> {
        let (address, rule) = self.pending;
        if rule == self.in_force {
            return Ok(());
        }
        let offset = address - self.table.base;
        let (number, within) = (offset / PAGE_SIZE, offset % PAGE_SIZE);
        Error::limit("pages of code", number + 1, PAGE_LIMIT)?;
        while self.table.pages.len() as u64 <= number {
            let here = self.table.pages.len() as u64 == number;
            self.table.pages.push(Page {
                first: self.table.rows.len() as u32,
                count: 0,
            });
            if self.in_force != Rule::NONE && !(here && within == 0) {
                self.append(0, self.in_force)?;
            }
        }
        // If no rule is valid before a page, the page begins with [`Rule::NONE`]. This row is added
        // with the first row of the page.
        let empty = self.table.pages.last().is_some_and(|page| page.count == 0);
        if empty && within != 0 {
            self.append(0, Rule::NONE)?;
        }
        if !(empty && within == 0 && rule == Rule::NONE) {
            self.append(within as u32, rule)?;
        }
        self.in_force = rule;
        Ok(())
    }

    /// Appends a row to the last page.
    fn append(&mut self, within: u32, rule: Rule) -> Result<(), Error> {
        let index = match self.indices.get(&rule) {
            Some(&index) => index,
            None => {
                let index = self.table.rules.len();
                Error::limit("different rules", index as u64 + 1, RULE_LIMIT)?;
                self.table.rules.push(rule);
                self.indices.insert(rule, index as u32);
                index as u32
            }
        };
        Error::limit("rows", self.table.rows.len() as u64 + 1, ROW_LIMIT)?;
        if let Some(page) = self.table.pages.last_mut() {
            Error::limit("rows of a page", u64::from(page.count) + 1, PAGE_ROW_LIMIT)?;
            page.count += 1;
            self.table.rows.push(within << 16 | index);
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rule::cfa;

    fn table(rows: &[(u64, Rule)]) -> Table {
        let mut pages = Pages::new(rows[0].0);
        for &(address, rule) in rows {
            pages.push(address, rule).unwrap();
        }
        pages.finish().unwrap()
    }

    const fn rule(offset: i32) -> Rule {
        Rule::at(cfa::STACK_POINTER, offset)
    }

    #[test]
    fn limits_are_errors() {
        let mut pages = Pages::new(0);
        for number in 0..RULE_LIMIT - 1 {
            pages.push(number * 8, rule(number as i32)).unwrap();
        }
        pages
            .push(1 << 20, Rule::at(cfa::FRAME_POINTER, 0))
            .unwrap();
        pages
            .push(1 << 21, Rule::at(cfa::FRAME_POINTER, 8))
            .unwrap();
        assert!(matches!(
            pages.finish(),
            Err(Error::TooLarge {
                what: "different rules",
                ..
            })
        ));

        let mut pages = Pages::new(0x7000);
        pages.push(PAGE_LIMIT * PAGE_SIZE, rule(8)).unwrap();
        assert!(matches!(
            pages.finish(),
            Err(Error::TooLarge {
                what: "pages of code",
                ..
            })
        ));

        let mut pages = Pages::new(0);
        let all =
            (0..=0xffff).try_for_each(|address| pages.push(address, rule(address as i32 % 2)));
        assert!(matches!(
            all.and(pages.finish().map(drop)),
            Err(Error::TooLarge {
                what: "rows of a page",
                ..
            })
        ));
    }

    proptest! {
        #[test]
        fn the_table_says_what_the_rows_say(
            start in 0..1_u64 << 20,
            steps in prop::collection::vec((0..0x9000_u64, 0..4_i32), 1..60),
            probes in prop::collection::vec(0..0x20_0000_u64, 40),
        ) {
            let mut address = start;
            let rows: Vec<(u64, Rule)> = steps
                .iter()
                .map(|&(step, kind)| {
                    address += step;
                    (address, if kind == 0 { Rule::NONE } else { rule(kind * 8) })
                })
                .collect();
            let table = table(&rows);
            let near = rows.iter().flat_map(|&(row, _)| [row.saturating_sub(1), row, row + 1]);
            for address in near.chain(probes) {
                let naive = rows.iter().rev().find(|row| row.0 <= address);
                prop_assert_eq!(table.rule(address), in_page(&table, address, naive));
            }
        }
    }

    /// Returns the expected rule. The last row is valid only up to the end of its page. Callers
    /// that build a table end it with [`Rule::NONE`].
    fn in_page(table: &Table, address: u64, naive: Option<&(u64, Rule)>) -> Rule {
        let end = table.base + table.pages.len() as u64 * PAGE_SIZE;
        naive
            .filter(|_| address < end)
            .map_or(Rule::NONE, |row| row.1)
    }
}
