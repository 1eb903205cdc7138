//! The tools as a change makes them, built of a copy of the source tree.

use std::collections::HashSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use systemscope_tests::programs::tool::TOOLS;
use systemscope_tests::{Turn, Workload};

use crate::mutant::{Mutant, tree};

/// Command lines that among them load every program.
const LOADING: [(&str, &str); 6] = [
    ("oncputime", "--duration 0.1"),
    ("offcputime", "--duration 0.1"),
    ("offwaketime", "--duration 0.1"),
    ("cpudist", "0.1 1"),
    ("cpudist", "-L 0.1 1"),
    ("cpudist", "-O 0.1 1"),
];

/// A copy of the source tree, and where its tools are built.
pub(crate) struct MutatedTools {
    tree: PathBuf,
    target: PathBuf,
}

/// A change, taken back when dropped.
pub(crate) struct Changed {
    path: PathBuf,
    text: String,
}

impl MutatedTools {
    /// Copies what is, or will be, under version control to target/mutants/tree.
    pub(crate) fn copy_tree() -> MutatedTools {
        // target/release/deps/mutants-0123456789abcdef
        let program = env::current_exe().expect("the path of this program");
        let target = program.ancestors().nth(3).expect("a target folder");
        // Kept: most of what is built does not depend on the programs.
        let target = target.join("mutants");
        let copy = target.join("tree");
        let listed = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(tree())
            .output()
            .expect("start git");
        assert!(listed.status.success(), "{}", text_of(&listed));
        let names = String::from_utf8(listed.stdout).expect("UTF-8");
        // What was moved away since.
        let wanted: HashSet<PathBuf> = names.split_terminator('\0').map(PathBuf::from).collect();
        remove_others(&copy, &copy, &wanted);
        for name in names.split_terminator('\0') {
            let (from, to) = (tree().join(name), copy.join(name));
            let Ok(bytes) = fs::read(&from) else {
                continue;
            };
            // What is the same keeps its time, and is not built again.
            if fs::read(&to).is_ok_and(|there| there == bytes) {
                continue;
            }
            fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
            fs::copy(&from, &to).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        MutatedTools { tree: copy, target }
    }

    /// Where the tools as they are lie.
    pub(crate) fn unchanged(&self) -> PathBuf {
        self.target.join("unchanged")
    }

    /// Keeps what is built now as the tools as they are.
    pub(crate) fn keep_unchanged(&self) {
        fs::create_dir_all(self.unchanged()).expect("a folder");
        for tool in TOOLS {
            let (from, to) = (self.folder().join(tool), self.unchanged().join(tool));
            fs::copy(&from, &to).unwrap_or_else(|error| panic!("{tool}: {error}"));
        }
    }

    /// Where the tools as a change makes them are.
    pub(crate) fn folder(&self) -> PathBuf {
        self.target.join("debug")
    }

    /// cargo in the copy. Optimized a little, as some tests are about time.
    pub(crate) fn cargo(&self, subcommand: &str, arguments: &[&str]) -> Command {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args([subcommand, "--locked", "--quiet"])
            .args(arguments)
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_DEV_DEBUG", "0");
        command
    }

    /// Builds the tools. What the compiler said if that fails.
    pub(crate) fn build(&self) -> Result<(), String> {
        let packages = TOOLS.iter().flat_map(|tool| ["-p", tool]);
        finish(self.cargo("build", &[]).args(packages))
    }

    /// Runs each tool for a moment: a change that the kernel's verifier refuses
    /// would be noticed by any test. What the tool said if it fails. One that stumbles
    /// over the figures has loaded.
    pub(crate) fn assert_loads(&self) -> Result<(), String> {
        let _turn = Turn::take();
        let simple = Workload::plain("simple");
        let pid = simple.pid().to_string();
        for (tool, arguments) in LOADING {
            let mut command = Command::new(self.folder().join(tool));
            command.args(["-p", &pid]);
            match finish(command.args(arguments.split(' '))) {
                Err(said) if !said.contains("panicked at") => return Err(said),
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes a change.
    pub(crate) fn change(&self, mutant: &Mutant) -> Changed {
        let path = mutant.path(&self.tree);
        let text = fs::read_to_string(&path).expect("a source file");
        write(&path, &mutant.applied_to(&text));
        Changed { path, text }
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        write(&self.path, &self.text);
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn text_of(output: &Output) -> String {
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{stdout}{stderr}")
}

/// Runs a command to its end. What it said if it fails.
pub(crate) fn finish(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("start {command:?}: {error}"));
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{command:?}: {}\n{}",
        output.status,
        text_of(&output)
    ))
}

/// Removes the files below `folder` that are not wanted, named from `top` on.
fn remove_others(folder: &Path, top: &Path, wanted: &HashSet<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.strip_prefix(top).expect("a path below it");
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_others(&path, top, wanted);
        } else if !wanted.contains(name) {
            fs::remove_file(&path).expect("remove what was moved away");
        }
    }
}
