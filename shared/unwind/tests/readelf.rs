//! Compares every row of real files with the row that binutils' readelf prints for the same bytes.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    collections::HashMap,
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use unwind::{Rule, Table, build, cfa, frame_pointer};

/// Row of call frame information, as readelf prints it.
#[derive(Clone, Debug, Default)]
struct Row {
    cfa: String,
    frame_pointer: String,
    return_address: String,
}

/// Calls `check` with each row of readelf, and with the first address and the end of that row.
fn for_each_row(path: &Path, mut check: impl FnMut(u64, u64, &Row)) {
    let mut readelf = Command::new("readelf")
        .arg("--debug-dump=frames-interp,no-follow-links")
        .arg(path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut common: HashMap<String, Row> = HashMap::new();
    let mut name = String::new();
    let mut range: Option<(u64, u64)> = None;
    let mut columns: Vec<String> = Vec::new();
    let mut rows: Vec<(u64, Row)> = Vec::new();
    let lines = BufReader::new(readelf.stdout.take().unwrap()).lines();
    for line in lines.map(Result::unwrap).chain([String::new()]) {
        // readelf prints a register as its number, followed by its name in brackets.
        let words = line
            .split_whitespace()
            .filter(|word| !word.starts_with('('));
        let words: Vec<&str> = words.collect();
        if line.contains(" CIE ") {
            name = words[0].to_owned();
            range = None;
        } else if line.contains(" FDE ") {
            name = words[4].strip_prefix("cie=").unwrap().to_owned();
            let (start, end) = words[5]
                .strip_prefix("pc=")
                .unwrap()
                .split_once("..")
                .unwrap();
            range = Some((hex(start), hex(end)));
        } else if line.starts_with("   LOC") {
            columns = words.iter().map(|&word| word.to_owned()).collect();
        } else if words.len() == columns.len() && line.starts_with("0") {
            let mut row = Row::default();
            for (column, &word) in columns.iter().zip(&words) {
                match column.as_str() {
                    "CFA" => word.clone_into(&mut row.cfa),
                    "rbp" => word.clone_into(&mut row.frame_pointer),
                    "ra" => word.clone_into(&mut row.return_address),
                    _ => {}
                }
            }
            rows.push((hex(words[0]), row));
        } else if line.is_empty() && !name.is_empty() {
            match range {
                None => {
                    if let Some((_, row)) = rows.last() {
                        common.insert(name.clone(), row.clone());
                    }
                }
                Some((start, end)) => {
                    // readelf prints no row if the common entry describes all addresses.
                    if rows.is_empty() {
                        rows.push((start, common[&name].clone()));
                    }
                    for (index, (from, row)) in rows.iter().enumerate() {
                        let to = rows.get(index + 1).map_or(end, |(next, _)| *next).min(end);
                        if *from < to {
                            check(*from, to, row);
                        }
                    }
                }
            }
            name.clear();
            rows.clear();
            columns.clear();
        }
    }
    readelf.wait().unwrap();
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap()
}

/// Returns the DWARF number of a register (System V ABI for x86-64, figure 3.36).
fn number(register: &str) -> u8 {
    const NAMES: [&str; 16] = [
        "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15",
    ];
    NAMES.iter().position(|&name| name == register).unwrap() as u8
}

/// Returns the rule of `row`; `None` if readelf does not print all of the row.
fn expected(row: &Row) -> Option<Rule> {
    if row.return_address == "u" {
        return Some(Rule::ROOT);
    }
    if row.cfa == "exp" {
        return None;
    }
    let at = row.cfa.find(['+', '-']).unwrap();
    let (register, offset) = row.cfa.split_at(at);
    let offset: i32 = offset.parse().unwrap();
    let mut rule = match register {
        "rsp" => Rule::at(cfa::STACK_POINTER, offset),
        "rbp" => Rule::at(cfa::FRAME_POINTER, offset),
        other => Rule::at(cfa::REGISTER + number(other), offset),
    };
    match row.return_address.as_str() {
        "c-8" if rule.cfa == cfa::STACK_POINTER && offset < 8 => return Some(Rule::ROOT),
        "c-8" => {}
        register if rule.cfa == cfa::STACK_POINTER && register.starts_with('r') => {
            rule.cfa = cfa::RETURN_IN_REGISTER + register[1..].parse::<u8>().unwrap();
        }
        _ => return Some(Rule::NONE),
    }
    match row.frame_pointer.as_str() {
        "" | "u" | "s" => {}
        "exp" => return None,
        saved => match saved.strip_prefix('c').and_then(|text| text.parse().ok()) {
            Some(offset) => {
                rule.frame_pointer = frame_pointer::AT_CFA;
                rule.frame_pointer_offset = offset;
            }
            None => rule.frame_pointer = frame_pointer::LOST,
        },
    }
    Some(rule)
}

/// Counts of a comparison.
#[derive(Debug, Default, PartialEq)]
struct Compared {
    rows: usize,
    /// Number of row ends with an expression for the CFA, by the kind of the CFA.
    expressions: HashMap<u8, usize>,
    /// Number of row ends at which the frame becomes the frame of an exception handler.
    handed_over: usize,
}

fn compare(path: &Path) -> (Compared, Table) {
    let built = build(&File::open(path).unwrap()).unwrap();
    assert_eq!(built.notes.unreadable, 0);
    let table = built.table;
    let mut compared = Compared::default();
    for_each_row(path, |start, end, row| {
        compared.rows += 1;
        for address in [start, end - 1] {
            let rule = table.rule(address);
            match expected(row) {
                Some(expected) => {
                    // GCC does not describe that the frame is handed over.
                    if rule.cfa == cfa::HANDED_OVER {
                        compared.handed_over += 1;
                    } else if rule != expected {
                        panic!("{path:?}, {address:#x}: {rule:?} instead of {row:?}");
                    }
                }
                None => *compared.expressions.entry(rule.cfa).or_default() += 1,
            }
        }
    });
    (compared, table)
}

/// libgcc throws exceptions. In four functions, three rows and the end of another row have the
/// handler's frame.
#[test]
fn the_special_case_of_the_unwinder() {
    let (compared, _) = compare(Path::new("/lib/x86_64-linux-gnu/libgcc_s.so.1"));
    assert_eq!(compared.handed_over, 4 * 7, "{compared:?}");
}

/// The C library has a signal frame, a procedure linkage table, vfork and clone.
#[test]
fn the_special_cases_of_the_c_library() {
    let (compared, table) = compare(Path::new("/lib/x86_64-linux-gnu/libc.so.6"));
    for kind in [cfa::SIGNAL_FRAME, cfa::PLT] {
        assert!(compared.expressions.contains_key(&kind), "{compared:?}");
    }
    assert!(
        !compared.expressions.contains_key(&cfa::NONE),
        "{compared:?}"
    );
    assert!(table.rules.contains(&Rule::at(cfa::SIGNAL_FRAME, 40)));
    assert!(
        table
            .rules
            .contains(&Rule::at(cfa::RETURN_IN_REGISTER + 5, 0))
    );
    assert!(table.rules.contains(&Rule::ROOT));
    // Nothing describes the code after the system call in clone().
    assert!(table.rules.contains(&Rule::at(cfa::CLONED, 8)));
}

#[test]
#[ignore = "reads whole libraries for seconds"]
fn libraries_and_programs_of_this_system() {
    for path in [
        "/lib64/ld-linux-x86-64.so.2",
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/lib/x86_64-linux-gnu/libm.so.6",
        "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/usr/bin/python3",
        "/usr/bin/readelf",
    ] {
        let path = Path::new(path);
        if path.exists() {
            let (compared, _) = compare(path);
            println!("{path:?}: {compared:?}");
            assert!(compared.rows > 100);
        }
    }
}
