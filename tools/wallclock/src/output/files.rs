//! Names of the output files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::bail;
use profile::ThreadId;

/// Returns the beginning of the names of a thread's files.
pub(crate) fn thread_base(id: ThreadId, role: &str) -> String {
    format!("thread_{}_{role}", id.tid)
}

/// Names of the results of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// Beginning of the files' paths for one process with one thread, or for a whole machine.
    pub(crate) prefix: PathBuf,
    /// Folder of the results in all other cases.
    pub(crate) folder: PathBuf,
    /// Beginning of the name of the analysis in the folder.
    pub(crate) base: OsString,
}

impl Names {
    /// Returns the names that the user requests, or names with `time`, in seconds since 1970.
    /// Without PIDs the names are for the whole machine.
    ///
    /// # Errors
    /// Returns an error if the prefix does not end in a name.
    pub(crate) fn new(output: Option<&Path>, pids: &[u32], time: u64) -> anyhow::Result<Names> {
        if let Some(prefix) = output {
            let base = prefix.file_name().filter(|_| !ends_in_slash(prefix));
            let Some(base) = base else {
                bail!(
                    "-o `{}` does not end in a name; give one, such as `{}`",
                    prefix.display(),
                    prefix.join("profile").display()
                );
            };
            return Ok(Names {
                prefix: prefix.to_owned(),
                folder: prefix.to_owned(),
                base: base.to_owned(),
            });
        }
        let (base, kind) = match pids {
            [] => (format!("combined_profile_all_{time}"), "machine"),
            [pid] => (format!("combined_profile_pid{pid}_{time}"), "multithread"),
            _ => (format!("combined_profile_{time}"), "multiprocess"),
        };
        Ok(Names {
            folder: format!("{kind}_{base}").into(),
            prefix: base.clone().into(),
            base: base.into(),
        })
    }

    /// Iterates over the files of a process with one thread, then the files of a machine.
    pub(crate) fn prefixed_files(&self) -> impl Iterator<Item = PathBuf> {
        let endings = SINGLE_ENDINGS.into_iter().chain(MACHINE_ENDINGS);
        endings.map(|ending| with_ending(&self.prefix, ending))
    }
}

/// Endings of the files of a process with one thread.
pub(crate) const SINGLE_ENDINGS: [&str; 4] =
    [".html", ".svg", ".folded", "_single_thread_analysis.txt"];
/// Endings of the files of a machine.
pub(crate) const MACHINE_ENDINGS: [&str; 4] = [".html", ".svg", ".folded", "_processes.txt"];
/// Name of the page in the folder.
pub(crate) const PAGE: &str = "report.html";
/// Folder of all other files, in the folder.
pub(crate) const FILES: &str = "files";

/// Appends an ending to a path.
pub(crate) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut text = path.as_os_str().to_owned();
    text.push(ending);
    text.into()
}

/// Returns whether a path ends in `/`. The path's components do not show it.
fn ends_in_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_asked_for() {
        let names = Names::new(Some(Path::new("out/run.1")), &[12], 99).unwrap();
        let folded = names.prefixed_files().nth(2);
        assert_eq!(folded.as_deref(), Some(Path::new("out/run.1.folded")));
        assert_eq!(names.folder, Path::new("out/run.1"));
        assert_eq!(names.base, "run.1");
        for prefix in ["", "/", "..", "out/", "out/.."] {
            let error = Names::new(Some(Path::new(prefix)), &[12], 99).unwrap_err();
            assert!(
                error.to_string().contains("does not end in a name"),
                "{prefix}"
            );
        }
    }
}
