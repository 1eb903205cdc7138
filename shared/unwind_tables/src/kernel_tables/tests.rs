//! Tests of the maps' contents. They need root.
#![allow(clippy::unwrap_used)]

use libbpf_rs::MapHandle;
use unwind::{Page, cfa};

use super::*;
use crate::tests::{found, loaded};

/// Row with its offset in the page, and the distance from the stack pointer to the CFA.
type Row = (u16, i32);

fn rule(offset: i32) -> Rule {
    Rule::at(cfa::STACK_POINTER, offset)
}

fn table(pages: &[&[Row]]) -> Table {
    let mut table = Table::default();
    for rows in pages {
        table.pages.push(Page {
            first: table.rows.len() as u32,
            count: rows.len() as u32,
        });
        for &(offset, rule_offset) in *rows {
            let rule = rule(rule_offset);
            let index = table.rules.iter().position(|known| *known == rule);
            let index = index.unwrap_or_else(|| {
                table.rules.push(rule);
                table.rules.len() - 1
            });
            table.rows.push(u32::from(offset) << 16 | index as u32);
        }
    }
    table
}

/// Returns the ID of a shard's map.
fn shard(object: &LoadedObject, index: u16) -> Option<u32> {
    found(object, bpf::maps::UNWIND_SHARDS, index.into())
}

fn rows(object: &LoadedObject, page: u32) -> Vec<Row> {
    let page: UnwindPage = found(object, bpf::maps::UNWIND_PAGES, page).unwrap();
    let Some(shard) = shard(object, page.shard).filter(|_| page.count > 0) else {
        return Vec::new();
    };
    let shard = MapHandle::from_map_id(shard).unwrap();
    let bytes = shard.lookup(&[0; 4], MapFlags::ANY).unwrap().unwrap();
    let (words, _) = bytes.as_chunks();
    let words = &words[page.first as usize..][..page.count.into()];
    let rows = words.iter().map(|word| {
        let row = u32::from_ne_bytes(*word);
        let rule: u64 = found(object, bpf::maps::UNWIND_RULES, row & 0xffff).unwrap();
        assert_eq!(rule as u8, cfa::STACK_POINTER);
        ((row >> 16) as u16, (rule >> 32) as i32)
    });
    rows.collect()
}

#[test]
fn a_shard_that_is_full_goes_with_its_last_table() {
    const MAX_ROWS: u16 = u16::MAX;
    let object = loaded();
    let mut tables = KernelTables::new(&object).unwrap();
    let page: Vec<Row> = (0..MAX_ROWS).map(|offset| (offset, 8)).collect();
    let pages = vec![&page[..]; SHARD_ROWS / page.len()];
    // This page has one row more than the rest of the shard can take.
    let next = &page[..=SHARD_ROWS % page.len()];
    let full = tables.place(&table(&pages)).unwrap();
    let open = tables.place(&table(&[next])).unwrap();
    assert_eq!((&full.shards[..], &open.shards[..]), (&[0][..], &[1][..]));
    let are_there = || [0, 1].map(|index| shard(&object, index).is_some());
    assert_eq!(are_there(), [true, true]);
    tables.remove(full);
    assert_eq!(are_there(), [false, true]);
    // Rows are still added to shard 1, so it stays.
    tables.remove(open);
    assert_eq!(are_there(), [false, true]);
    let placed = tables.place(&table(&[next])).unwrap();
    assert_eq!(placed.shards, [1]);
    assert_eq!(rows(&object, placed.first_page), next);
}

#[test]
fn there_is_room_for_as_many_rules_as_have_numbers() {
    let object = loaded();
    let mut tables = KernelTables::new(&object).unwrap();
    let most = i32::from(u16::MAX);
    let mut place = |from: i32, to: i32| {
        let table = Table {
            rules: (from..to).map(rule).collect(),
            ..Table::default()
        };
        tables.place(&table).map_err(|error| error.to_string())
    };
    place(0, 1000).unwrap();
    // Rules that exist already need no new number.
    place(500, most).unwrap();
    let error = place(most, most + 1).unwrap_err();
    assert!(error.contains("no room for its rules"), "{error}");
}
