//! Compares rules from machine code with the call frame information of the same code, which
//! `readelf` prints.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

use super::tests::analyse;
use crate::rule::{Rule, cfa, frame_pointer};

/// Row of the call frame information, which is valid from its address on.
#[derive(Clone, Default)]
struct Row {
    address: u64,
    cfa: String,
    frame_pointer: String,
    return_address: String,
}

/// Function, or part of a function.
struct Function {
    range: Range<u64>,
    rows: Vec<Row>,
}

/// Numbers of bytes of code, by how their rules compare.
#[derive(Debug, Default)]
struct Score {
    all: u64,
    /// Bytes whose rule agrees with the call frame information.
    right: u64,
    /// Bytes whose rule contradicts the call frame information.
    wrong: u64,
    /// Bytes whose rule uses another register. It may give the same frame.
    other: u64,
    /// Bytes without a rule.
    none: u64,
}

#[test]
fn stock_library() {
    let score = compare(Path::new("/lib/x86_64-linux-gnu/libc.so.6"), true);
    assert!(
        (score.right + score.other) * 100 > score.all * 95,
        "{score:?}"
    );
    assert!(score.wrong * 1000 < score.all, "{score:?}");
}

#[test]
fn stripped_library() {
    let score = compare(Path::new("/lib/x86_64-linux-gnu/libc.so.6"), false);
    assert!(
        (score.right + score.other) * 100 > score.all * 95,
        "{score:?}"
    );
    // Most wrong bytes are in code that ends a program with an error, without a return after it.
    assert!(score.wrong * 250 < score.all, "{score:?}");
}

/// Compares the rules for `.text` of the file `path`. The analysis knows the addresses of the
/// file's functions if `has_symbols` is true.
fn compare(path: &Path, has_symbols: bool) -> Score {
    let (address, code) = text(path);
    let inside = address..=address + code.len() as u64;
    let mut truth = functions(path);
    truth.retain(|function| {
        inside.contains(&function.range.start) && inside.contains(&function.range.end)
    });
    let (whole, parts): (Vec<_>, Vec<_>) = truth
        .iter()
        .partition(|function| function.rows[0].cfa == "rsp+8");
    let ranges = |functions: &[&Function]| -> Vec<_> {
        functions
            .iter()
            .map(|function| function.range.clone())
            .collect()
    };
    let rows = if has_symbols {
        analyse(&code, address, &ranges(&whole), &ranges(&parts))
    } else {
        analyse(&code, address, &[], &[])
    };

    let mut score = Score::default();
    for function in &truth {
        for at in function.range.clone() {
            let expected =
                &function.rows[function.rows.partition_point(|row| row.address <= at) - 1];
            let row = rows[..rows.partition_point(|row| row.0 <= at)].last();
            let rule = row.map_or(Rule::NONE, |row| row.1);
            score.all += 1;
            *match agrees(rule, expected) {
                _ if rule == Rule::NONE => &mut score.none,
                Some(true) => &mut score.right,
                Some(false) => &mut score.wrong,
                None => &mut score.other,
            } += 1;
        }
    }
    score
}

/// Returns whether the rule and the row agree; `None` if they use different registers.
fn agrees(rule: Rule, row: &Row) -> Option<bool> {
    if row.return_address != "c-8" {
        return None;
    }
    let register = match rule.cfa {
        cfa::STACK_POINTER => "rsp+",
        cfa::FRAME_POINTER => "rbp+",
        _ => return Some(false),
    };
    let offset: i32 = row.cfa.strip_prefix(register)?.parse().ok()?;
    let saved: Option<i32> = row
        .frame_pointer
        .strip_prefix('c')
        .and_then(|at| at.parse().ok());
    let frame_pointer = match (rule.frame_pointer, saved) {
        // Compilers do not describe that the frame pointer is restored just before the return.
        (frame_pointer::SAME, Some(saved)) => -saved > offset,
        (frame_pointer::AT_CFA, saved) => saved == Some(rule.frame_pointer_offset.into()),
        (frame_pointer::LOST, saved) => saved.is_none(),
        _ => true,
    };
    Some(offset == rule.cfa_offset && frame_pointer)
}

/// Returns the address and the bytes of a file's `.text`.
fn text(path: &Path) -> (u64, Vec<u8>) {
    let sections = readelf(&["-SW"], path);
    let text = sections
        .lines()
        .find_map(|line| line.split_once(" .text "))
        .unwrap()
        .1;
    let fields: Vec<_> = text.split_whitespace().skip(1).take(3).collect();
    let [address, offset, size] = fields[..] else {
        unreachable!()
    };
    let offset = number(offset).unwrap() as usize;
    let size = number(size).unwrap() as usize;
    (
        number(address).unwrap(),
        fs::read(path).unwrap()[offset..offset + size].to_vec(),
    )
}

fn functions(path: &Path) -> Vec<Function> {
    let mut functions: Vec<Function> = Vec::new();
    // First row of each function, by the name of its common entry.
    let mut common: HashMap<String, Row> = HashMap::new();
    let mut in_common = None;
    let mut columns = Vec::new();
    for line in readelf(&["--debug-dump=frames-interp", "-W"], path).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first() == Some(&"LOC") {
            columns = words.iter().map(|&word| word.to_owned()).collect();
        } else if words.get(3) == Some(&"CIE") {
            in_common = Some(words[0].to_owned());
        } else if words.get(3) == Some(&"FDE") {
            in_common = None;
            let (start, end) = words[5].trim_start_matches("pc=").split_once("..").unwrap();
            let range = number(start).unwrap()..number(end).unwrap();
            let first = common
                .get(words[4].trim_start_matches("cie="))
                .cloned()
                .unwrap_or_default();
            let rows = vec![Row {
                address: range.start,
                ..first
            }];
            functions.push(Function { range, rows });
        } else if words.len() == columns.len()
            && let Some(address) = words.first().and_then(|word| number(word))
        {
            let column = |name: &str| {
                let at = columns.iter().position(|column| column == name);
                at.map_or_else(|| "u".to_owned(), |at| words[at].to_owned())
            };
            let row = Row {
                address,
                cfa: column("CFA"),
                frame_pointer: column("rbp"),
                return_address: column("ra"),
            };
            match (&in_common, functions.last_mut()) {
                (Some(name), _) => _ = common.insert(name.clone(), row),
                (None, Some(function)) => {
                    function.rows.retain(|row| row.address < address);
                    function.rows.push(row);
                }
                _ => {}
            }
        }
    }
    functions.retain(|function| !function.range.is_empty());
    functions
}

fn readelf(options: &[&str], path: &Path) -> String {
    let output = Command::new("readelf")
        .args(options)
        .arg(path)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn number(hexadecimal: &str) -> Option<u64> {
    u64::from_str_radix(hexadecimal, 16).ok()
}
