//! `make tables`: puts the table that a command prints into the documents, where
//! there is one for each kind of machine.
//!
//! usage: `tables NAME < OUTPUT`, or `tables machine`, which prints the line that
//! a table begins with.

use std::env;
use std::fs;
use std::io::{self, BufRead};
use std::path::Path;
use std::process::ExitCode;

use systemscope_tests::machine;

/// What a table is called, and the documents that have it between
/// `<!-- NAME -->` and `<!-- /NAME -->`.
const TABLES: [(&str, &[&str]); 5] = [
    ("truth", &["docs/truth.md"]),
    ("bench", &["docs/bench.md"]),
    ("abuse", &["docs/abuse.md"]),
    ("soak", &["docs/abuse.md"]),
    ("kernels", &["docs/kernels.md", "README.md"]),
];

fn main() -> ExitCode {
    let name = env::args().nth(1).unwrap_or_default();
    if name == "machine" {
        println!("{}", machine::line());
        return ExitCode::SUCCESS;
    }
    match put(&name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tables: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Shows what is on stdin, and puts the table in it where it belongs.
fn put(name: &str) -> Result<(), String> {
    let found = TABLES.iter().find(|(table, _)| *table == name);
    let (_, documents) = found.ok_or_else(|| {
        let names = TABLES.map(|(table, _)| table);
        format!("usage: tables machine|{} < OUTPUT", names.join("|"))
    })?;
    let mut output = String::new();
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| format!("stdin: {error}"))?;
        println!("{line}");
        output += &line;
        output += "\n";
    }
    let table = Table::find(&output).ok_or("no table was printed: the documents are as before")?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for document in *documents {
        let failed = |error: io::Error| format!("{document}: {error}");
        let path = root.join(document);
        let text = fs::read_to_string(&path).map_err(failed)?;
        let text = exchanged(&text, name, &table);
        let text = text.ok_or_else(|| format!("{document}: no marks of {name}"))?;
        fs::write(&path, text).map_err(failed)?;
        eprintln!("tables: {document} has that of {}", table.kind);
    }
    Ok(())
}

/// What a command printed of a machine.
#[derive(Debug, PartialEq, Eq)]
struct Table {
    kind: String,
    text: String,
}

impl Table {
    /// Those lines of a command's output: from the line that names the machine to
    /// the one that says how much was missed.
    fn find(output: &str) -> Option<Table> {
        let is_head = |line: &&str| line.contains("; clock source ") && !line.starts_with('|');
        let mut lines = output.lines().skip_while(|line| !is_head(line));
        let (kind, rest) = lines.next()?.split_once("; ")?;
        let mut text = format!("**{kind}**; {rest}\n");
        for line in lines {
            text += line;
            text += "\n";
            if line.ends_with(" missed") && line.contains(" of ") && !line.starts_with('|') {
                let kind = kind.to_owned();
                return Some(Table { kind, text });
            }
        }
        None
    }
}

/// A document with a table in place of the one of the same kind of machine, or
/// after the others; none if it has no marks.
fn exchanged(document: &str, name: &str, table: &Table) -> Option<String> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let (before, rest) = document.split_once(&begin)?;
    let (between, after) = rest.split_once(&end)?;
    let mut tables: Vec<String> = Vec::new();
    for line in between.lines() {
        if line.starts_with("**") {
            tables.push(String::new());
        }
        if let Some(table) = tables.last_mut() {
            *table += line;
            *table += "\n";
        }
    }
    let head = format!("**{}**;", table.kind);
    match tables.iter_mut().find(|other| other.starts_with(&head)) {
        Some(same) => same.clone_from(&table.text),
        None => tables.push(table.text.clone()),
    }
    let tables: Vec<&str> = tables.iter().map(|table| table.trim_end()).collect();
    let between = tables.join("\n\n");
    Some(format!("{before}{begin}\n{between}\n\n{end}{after}"))
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    fn output(kind: &str, cell: &str) -> String {
        format!(
            "noise\n{kind}; 2 CPUs; clock source tsc\n\n| {cell} |\n\n1 of 2 missed\nmore noise\n"
        )
    }

    #[test]
    fn a_table_replaces_that_of_its_kind_alone() {
        let mut document = "a\n<!-- x -->\n<!-- /x -->\nz\n".to_owned();
        for (kind, cell) in [("one", "1"), ("two", "2"), ("one", "3")] {
            let table = Table::find(&output(kind, cell)).expect("a table");
            document = exchanged(&document, "x", &table).expect("marks");
        }
        let block = |kind, cell| {
            format!("**{kind}**; 2 CPUs; clock source tsc\n\n| {cell} |\n\n1 of 2 missed\n\n")
        };
        let (one, two) = (block("one", "3"), block("two", "2"));
        assert_eq!(
            document,
            format!("a\n<!-- x -->\n\n{one}{two}<!-- /x -->\nz\n")
        );
    }

    #[test]
    fn output_without_a_whole_table_has_none() {
        assert_eq!(
            Table::find("one; 2 CPUs; clock source tsc\n\n| 1 |\n"),
            None
        );
        assert_eq!(Table::find("| a row | 1 of 2 missed\n"), None);
    }

    #[test]
    fn every_document_has_its_marks() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let table = Table::find(&output("one", "1")).expect("a table");
        for (name, documents) in TABLES {
            for document in documents {
                let text = fs::read_to_string(root.join(document)).expect("a document");
                assert!(
                    exchanged(&text, name, &table).is_some(),
                    "{name} in {document}"
                );
            }
        }
    }
}
