//! Checks that must pass for any bytes. The fuzz target uses them, too.

use std::{collections::HashSet, time::Duration};

use unwind::{PAGE_SIZE, build};

/// Builds a table from `bytes`, and asserts that the table is bounded and valid.
pub(crate) fn check(bytes: &[u8]) {
    let (built, cost) = tamper::cost(|| build(bytes));
    assert!(cost.time < Duration::from_secs(2), "{cost:?}");
    let Ok(built) = built else {
        return;
    };
    let table = &built.table;
    // A row takes at least one byte of instructions. A description takes at least one byte for the
    // row at its end. All other rows are the first rows of pages.
    assert!(table.rows.len() <= 2 * bytes.len() + table.pages.len() + 64);
    assert!(table.pages.len() <= 1 << 16);
    assert!(table.rules.len() <= 8192);
    assert_eq!(table.base % PAGE_SIZE, 0);
    let different: HashSet<_> = table.rules.iter().collect();
    assert_eq!(different.len(), table.rules.len());

    let mut first = 0;
    for page in &table.pages {
        assert_eq!(page.first as usize, first);
        first += page.count as usize;
        let rows = &table.rows[page.first as usize..first];
        assert!(rows.len() <= 0xffff);
        assert!(rows.first().is_none_or(|row| row >> 16 == 0));
        assert!(rows.windows(2).all(|pair| pair[0] >> 16 < pair[1] >> 16));
        assert!(
            rows.iter()
                .all(|row| ((row & 0xffff) as usize) < table.rules.len())
        );
    }
    assert_eq!(first, table.rows.len());

    let middle = table
        .base
        .saturating_add(table.pages.len() as u64 * PAGE_SIZE / 2);
    for address in [0, table.base, middle, u64::MAX] {
        table.rule(address);
    }
    for segment in &built.segments {
        built.address(segment.offset);
        built.address(segment.offset.wrapping_add(segment.size));
    }
}
