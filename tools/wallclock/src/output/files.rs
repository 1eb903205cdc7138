//! What the output files are called.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::bail;
use profile::ThreadId;

/// The file's name that a thread's files start with.
pub(crate) fn thread_base(id: ThreadId, role: &str) -> String {
    format!("thread_{}_{role}", id.tid)
}

/// Where the results of a run go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// One process with one thread: what its three files start with.
    pub(crate) prefix: PathBuf,
    /// Anything else: the folder.
    pub(crate) folder: PathBuf,
    /// What the analysis in the folder starts with.
    pub(crate) base: OsString,
}

impl Names {
    /// The names that the user asks for, or those of the time (in seconds
    /// since 1970). Without a process they are of the whole machine.
    ///
    /// # Errors
    /// The prefix does not end in a name.
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

    /// The files of a process with one thread, and those of a machine.
    pub(crate) fn prefixed_files(&self) -> impl Iterator<Item = PathBuf> {
        let endings = SINGLE_ENDINGS.into_iter().chain(MACHINE_ENDINGS);
        endings.map(|ending| with_ending(&self.prefix, ending))
    }
}

/// What the files of a process with one thread end in.
pub(crate) const SINGLE_ENDINGS: [&str; 3] = [".svg", ".folded", "_single_thread_analysis.txt"];
/// What those of a machine end in.
pub(crate) const MACHINE_ENDINGS: [&str; 3] = [".svg", ".folded", "_processes.txt"];

/// The path with more characters at its end.
pub(crate) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut text = path.as_os_str().to_owned();
    text.push(ending);
    text.into()
}

/// A last `/` is lost in a path's components.
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
        let folded = names.prefixed_files().nth(1);
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
