//! Runs of wallclock in directories of their own, and the files that these runs leave.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::printed::output::files_below;
use crate::programs::tool::PATIENCE;
use crate::programs::workload::scratch;
use crate::{Finished, Folded, Running, Tool};

/// Starts wallclock on a terminal, and waits until the window is about to open. wallclock shows
/// this only on a terminal.
pub fn start_measuring(wallclock: Tool) -> Running {
    let mut running = wallclock.start_on_a_terminal();
    running.wait_until_said("measuring", PATIENCE);
    running
}

fn prefixed(pids: &str, arguments: &str, folder: &TempDir) -> Tool {
    fs::create_dir(folder.path().join("out")).unwrap();
    let tool = Tool::new("wallclock").arg(pids).args(arguments);
    tool.args("-o out/base").in_folder(folder.path())
}

/// Finished run of wallclock in a directory of its own.
#[derive(Debug)]
pub struct Run {
    /// Directory in which it ran.
    pub folder: TempDir,
    /// Output and exit status.
    pub finished: Finished,
    /// All files that the run left.
    pub files: Vec<PathBuf>,
}

impl Run {
    /// Runs wallclock with `arguments` and `-o out/base`.
    pub fn with_prefix(pids: &str, arguments: &str) -> Run {
        let folder = scratch();
        Run::of(prefixed(pids, arguments, &folder).run(), folder)
    }

    /// Runs wallclock on a terminal with `arguments` and `-o out/base`, and calls `meanwhile` once
    /// it measures.
    pub fn meanwhile(pids: &str, arguments: &str, meanwhile: impl FnOnce()) -> Run {
        let folder = scratch();
        let running = start_measuring(prefixed(pids, arguments, &folder));
        meanwhile();
        Run::of(running.finish_within(PATIENCE), folder)
    }

    /// Runs wallclock without `-o`.
    pub fn without_prefix(pids: &str, arguments: &str) -> Run {
        let folder = scratch();
        let tool = Tool::new("wallclock").arg(pids).args(arguments);
        Run::of(tool.in_folder(folder.path()).run(), folder)
    }

    fn of(finished: Finished, folder: TempDir) -> Run {
        let finished = finished.succeeded();
        let files = files_below(folder.path());
        Run {
            folder,
            finished,
            files,
        }
    }

    /// Returns the only file whose name starts with `start` and ends with `end`.
    pub fn file(&self, start: &str, end: &str) -> &Path {
        let mut found = self.files.iter().filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with(start) && name.ends_with(end)
        });
        let file = found
            .next()
            .unwrap_or_else(|| panic!("no {start}…{end} in {:#?}", self.files));
        assert!(
            found.next().is_none(),
            "more than one {start}…{end} in {:#?}",
            self.files
        );
        file
    }

    /// Returns the only file for all threads together whose name ends with `end`.
    pub fn combined(&self, end: &str) -> &Path {
        let mut found = self.files.iter().filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            !name.starts_with("thread_") && name.ends_with(end)
        });
        let file = found
            .next()
            .unwrap_or_else(|| panic!("no {end} of all threads in {:#?}", self.files));
        assert!(
            found.next().is_none(),
            "more than one {end} of all threads in {:#?}",
            self.files
        );
        file
    }

    /// Parses the stacks in the file that [`Run::file`] returns.
    pub fn folded(&self, start: &str, end: &str) -> Folded {
        Folded::parse(&fs::read(self.file(start, end)).unwrap())
    }

    /// Reads the file that [`Run::file`] returns.
    pub fn text(&self, start: &str, end: &str) -> String {
        fs::read_to_string(self.file(start, end)).unwrap()
    }
}

/// Checks that each leaf frame has a mark for its thread state.
///
/// # Panics
///
/// Panics if a leaf frame has no mark.
pub fn assert_marked(folded: &Folded) {
    let unmarked = folded.lines.iter().find(|line| {
        !["_[c]", "_[o]", "_[r]"]
            .iter()
            .any(|mark| line.leaf().ends_with(mark))
    });
    assert_eq!(unmarked, None, "a leaf without a mark of its state");
}
