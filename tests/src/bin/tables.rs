//! `make tables`: writes the table that a command prints to a file below `docs/results`. Each table
//! has one file for each kind of machine.
//!
//! usage: `tables NAME < OUTPUT`, or `tables machine`, which prints the line that a table begins
//! with.

#![allow(clippy::print_stderr)]

use std::env;
use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use systemscope_tests::machine;

/// Command with a table in `docs/results`, and the document that explains the table.
struct Source {
    name: &'static str,
    title: &'static str,
    command: &'static str,
    document: &'static str,
}

const SOURCES: [Source; 5] = [
    Source {
        name: "truth",
        title: "Figures of the tools against independent measurements",
        command: "make truth",
        document: "truth.md",
    },
    Source {
        name: "bench",
        title: "Cost of the tools and of comparable tools",
        command: "make bench",
        document: "bench.md",
    },
    Source {
        name: "abuse",
        title: "Faults and their outcomes",
        command: "make abuse",
        document: "abuse.md",
    },
    Source {
        name: "soak",
        title: "Memory of the tools in long runs",
        command: "make soak",
        document: "abuse.md",
    },
    Source {
        name: "kernels",
        title: "Tests on the kernels of four Debian releases",
        command: "make test-kernels",
        document: "kernels.md",
    },
];

fn main() -> ExitCode {
    let name = env::args().nth(1).unwrap_or_default();
    if name == "machine" {
        println!("{}", machine::line());
        return ExitCode::SUCCESS;
    }
    match write_table(&name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tables: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Copies stdin to stdout, and writes the table in it to the file for its machine.
fn write_table(name: &str) -> Result<(), String> {
    let source = SOURCES.iter().find(|source| source.name == name);
    let source = source.ok_or_else(|| {
        let names = SOURCES.map(|source| source.name);
        format!("usage: tables machine|{} < OUTPUT", names.join("|"))
    })?;
    let mut output = String::new();
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| format!("cannot read stdin: {error}"))?;
        println!("{line}");
        output += &line;
        output += "\n";
    }
    let table = Table::find(&output)
        .ok_or("stdin has no complete table: no file was changed; see the output above")?;
    let path = source.folder().join(file_name(&table.kind));
    let failed = |error: io::Error| format!("cannot write {}: {error}", path.display());
    fs::create_dir_all(source.folder()).map_err(failed)?;
    fs::write(&path, source.to_document(&table)).map_err(failed)?;
    eprintln!("tables: wrote {}", path.display());
    Ok(())
}

impl Source {
    fn folder(&self) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        root.join("docs/results").join(self.name)
    }

    fn heading(&self) -> String {
        format!("# {}: result of `{}`\n", self.title, self.command)
    }

    fn to_document(&self, table: &Table) -> String {
        let (heading, text) = (self.heading(), &table.text);
        let (name, document) = (self.name, self.document);
        format!(
            "{heading}\n{text}\n[{document}](../../{document}) explains the columns; \
             `make tables TABLES={name}` rewrites this file.\n"
        )
    }
}

/// Returns the file name for a kind of machine: the words of the kind in lower case, joined by `-`.
/// Words that all CPU models share are left out.
fn file_name(kind: &str) -> String {
    let kind = kind.to_lowercase().replace("(r)", "").replace("(tm)", "");
    let words = kind.split(|letter: char| !letter.is_ascii_alphanumeric());
    let telling = words.filter(|word| !["", "cpu", "processor"].contains(word));
    telling.collect::<Vec<&str>>().join("-") + ".md"
}

/// Table that a command printed on one machine.
#[derive(Debug, PartialEq, Eq)]
struct Table {
    kind: String,
    text: String,
}

impl Table {
    /// Returns the lines from the one that names the machine to the one that counts
    /// missed rows.
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

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_found_among_other_output() {
        let output = "noise\none; 2 CPUs; clock source tsc\n\n| 1 |\n\n1 of 2 missed\nnoise\n";
        let table = Table::find(output).expect("a table");
        assert_eq!(table.kind, "one");
        assert_eq!(
            table.text,
            "**one**; 2 CPUs; clock source tsc\n\n| 1 |\n\n1 of 2 missed\n"
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
    fn a_file_is_named_after_the_kind_of_machine() {
        for (kind, name) in [
            ("AMD EPYC, KVM", "amd-epyc-kvm.md"),
            ("Intel(R) Xeon(R) Processor, KVM", "intel-xeon-kvm.md"),
            (
                "Intel(R) Core(TM) i7-10700 CPU @ 2.90GHz, no hypervisor told",
                "intel-core-i7-10700-2-90ghz-no-hypervisor-told.md",
            ),
            ("../../A/B", "a-b.md"),
        ] {
            assert_eq!(file_name(kind), name);
        }
    }

    #[test]
    fn every_file_of_results_is_where_its_table_is_written() {
        for source in &SOURCES {
            let document = source.folder().join("../..").join(source.document);
            assert!(document.exists(), "{}", source.document);
            let files = fs::read_dir(source.folder()).expect("a folder of results");
            for file in files {
                let path = file.expect("a file").path();
                let text = fs::read_to_string(&path).expect("a document");
                assert!(text.starts_with(&source.heading()), "{path:?}");
                let machine = text.lines().find_map(|line| line.strip_prefix("**"));
                let kind = machine.and_then(|line| line.split_once("**; "));
                let (kind, _) = kind.expect("a line that names the machine");
                let name = path.file_name().expect("a name");
                assert_eq!(name.to_str(), Some(file_name(kind).as_str()));
            }
        }
    }
}
