//! The tests of this tree, run on tools that are built elsewhere.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools::{MutatedTools, finish};

/// Where the tests are and what they run on.
pub(crate) struct Suite<'a> {
    tools: &'a MutatedTools,
    /// target/debug/deps
    programs: PathBuf,
    /// What passed on the tools as they are.
    passes: BTreeSet<&'static str>,
}

impl Suite<'_> {
    pub(crate) fn new(tools: &MutatedTools) -> Suite<'_> {
        let program = env::current_exe().expect("the path of this program");
        let target = program.ancestors().nth(3).expect("a target folder");
        Suite {
            tools,
            programs: target.join("debug/deps"),
            passes: BTreeSet::new(),
        }
    }

    /// What a test, `program::module::name`, does not like about the change: it fails
    /// there, and passes on the tools as they are, of which it is asked once.
    pub(crate) fn notices(&mut self, test: &'static str) -> Option<String> {
        let said = self.run(test, &self.tools.folder()).err()?;
        if test.contains('/') || self.passes.contains(test) {
            return Some(gist(&said));
        }
        if let Err(said) = self.run(test, &self.tools.unchanged()) {
            eprintln!("    {test} fails without any change: {}", gist(&said));
            return None;
        }
        self.passes.insert(test);
        Some(gist(&said))
    }

    /// Runs a test on the tools in a folder. What it said if it fails.
    fn run(&self, test: &str, tools: &Path) -> Result<(), String> {
        let mut command = match test.split_once('/') {
            Some((package, test)) => self.with_programs(package, test),
            None => self.end_to_end(test),
        };
        command
            .args(["--exact", "--test-threads=1", "--nocapture"])
            .env("SYSTEMSCOPE_BIN_DIR", tools);
        finish(&mut command)
    }

    /// A test of the programs themselves, which are part of its own program.
    fn with_programs(&self, package: &str, test: &str) -> Command {
        let (module, name) = split(test);
        self.tools
            .cargo("test", &["-p", package, "--test", module, "--", name])
    }

    fn end_to_end(&self, test: &str) -> Command {
        let (program, name) = split(test);
        let mut command = Command::new(self.program(program));
        command.arg(name);
        command
    }

    /// The program that was built last of those with this name.
    fn program(&self, name: &str) -> PathBuf {
        let files = fs::read_dir(&self.programs).expect("the tests' programs");
        let is_program = |path: &PathBuf| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            path.extension().is_none() && file.rsplit_once('-').is_some_and(|(is, _)| is == name)
        };
        files
            .map(|file| file.expect("a file").path())
            .filter(is_program)
            .max_by_key(|path| fs::metadata(path).and_then(|file| file.modified()).ok())
            .unwrap_or_else(|| panic!("no test program {name}: run `cargo test --no-run`"))
    }
}

fn split(test: &str) -> (&str, &str) {
    test.split_once("::")
        .unwrap_or_else(|| panic!("{test} is not program::module::name"))
}

/// The first line that says what a test did not like.
fn gist(said: &str) -> String {
    let mut lines = said
        .lines()
        .skip_while(|line| !line.contains("panicked at"));
    let gist: Vec<&str> = lines.by_ref().take(2).collect();
    gist.join(" ").chars().take(300).collect()
}
