//! Compares code objects of the standard library with the interpreter's own values.

use process::ProcessMemory;
use serde::Deserialize;

use super::{Target, interpreters};
use crate::Function;
use crate::python::lines::Format;
use crate::python::{CodeObject, Layout, checksum, read};

#[derive(Deserialize)]
struct Row {
    address: u64,
    name: String,
    file: String,
    first_line: u32,
    /// Ranges of instructions, each with its start, its end and its line. The end is not part of
    /// the range.
    lines: Vec<(i32, i32, Option<u32>)>,
    /// First instruction of the begun code, since 3.11.
    begin: Option<i32>,
    is_generator: bool,
}

#[test]
fn code_objects_are_as_the_interpreter_has_them() {
    for (minor, python) in interpreters() {
        let mut target = Target::start(&python, "lines");
        let layout = target.layout;
        let mut memory = ProcessMemory::new(target.child.id());
        let (mut codes, mut offsets, mut without_line, mut generators) = (0, 0, 0, 0);
        let mut rows = Vec::new();
        while let Some(row) = target.row::<Row>(&mut String::new()) {
            rows.push(row);
        }
        for row in rows {
            let expected = checksum_of(&mut memory, layout, row.address);
            let code = read(&memory, layout, row.address, expected);
            let code = code.unwrap_or_else(|| panic!("3.{minor}: {} {}", row.file, row.name));
            for &(start, end, line) in row.lines.iter().filter(|(start, end, _)| start < end) {
                for offset in [start, end - 2] {
                    let at = format!("3.{minor}: {}:{} at {offset}", row.file, row.name);
                    assert_eq!(code.line(offset), line, "{at}");
                    offsets += 1;
                    without_line += u32::from(line.is_none());
                }
            }
            check(&code, &row);
            codes += 1;
            generators += u32::from(row.is_generator);
        }
        println!("3.{minor}: {codes} code objects, {offsets} lines, {without_line} of them none");
        assert!(codes > 3000 && offsets > 50_000 && generators > 50);
        assert_eq!(
            without_line > 100,
            layout.lines != Format::Steps,
            "3.{minor}"
        );
    }
}

fn check(code: &CodeObject, row: &Row) {
    let has = (&code.name, &code.file, code.first_line);
    assert_eq!(has, (&row.name, &row.file, row.first_line));
    assert_eq!(code.line(-1), Some(row.first_line));
    let begin = row.begin.unwrap_or(0);
    assert!(code.is_shown(begin));
    let is_always = row.is_generator || row.begin.is_none();
    assert_eq!(code.is_shown(begin - 2), is_always, "{has:?}");
}

fn checksum_of(memory: &mut ProcessMemory, layout: &Layout, address: u64) -> u32 {
    let mut word = |offset| memory.word(address + u64::from(offset)).unwrap();
    let line = layout.code_first_line;
    let first_line = word(line & !7) >> (u64::from(line % 8) * 8);
    checksum(
        word(layout.code_filename),
        word(layout.code_qualname),
        first_line as u32,
    )
}
