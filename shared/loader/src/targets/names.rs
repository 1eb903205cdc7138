//! Names of processes.

use std::fs;
use std::io;
use std::path::Path;

use process::living_thread;

/// Names of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessNames {
    /// ID in the caller's PID namespace.
    pub pid: u32,
    /// Name of the first thread, at most 15 bytes (`TASK_COMM_LEN` of include/linux/sched.h).
    pub comm: String,
    /// File name of the executable; `None` for a kernel thread.
    pub executable: Option<String>,
}

/// Maximum length of a thread's name in the kernel, in bytes.
const LONGEST_COMM: usize = 15;
/// End of the target of `/proc/PID/exe` once the file is deleted.
const DELETED: &str = " (deleted)";

impl ProcessNames {
    /// Returns the names of every process that `/proc` lists, except this one.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn of_all() -> io::Result<Vec<ProcessNames>> {
        let own = std::process::id();
        let mut all = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let entry = entry?;
            let pid = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            let pid = pid.filter(|pid| *pid != own);
            // A process that has ended meanwhile has no names.
            all.extend(pid.and_then(|pid| ProcessNames::read(pid, &entry.path())));
        }
        all.sort_unstable_by_key(|names| names.pid);
        Ok(all)
    }

    fn read(pid: u32, folder: &Path) -> Option<ProcessNames> {
        // The `comm` of a zombie can still be read.
        let living = living_thread(pid)?;
        let comm = fs::read(folder.join("comm")).ok()?;
        let comm = String::from_utf8_lossy(&comm);
        let executable = fs::read_link(format!("/proc/{living}/exe")).ok();
        let executable = executable.and_then(|path| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            Some(
                name.strip_suffix(DELETED)
                    .map(str::to_owned)
                    .unwrap_or(name),
            )
        });
        Some(ProcessNames {
            pid,
            comm: comm.strip_suffix('\n').unwrap_or(&comm).to_owned(),
            executable,
        })
    }

    /// Returns whether the process has this name: the name of its first thread or of its
    /// executable.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let executable = self.executable.as_deref();
        // The kernel cuts off long thread names. If the executable's name begins with the thread's
        // name, it shows the rest.
        let is_rest_known = executable.is_some_and(|whole| whole.starts_with(&self.comm));
        let is_cut = self.comm.len() == LONGEST_COMM && !is_rest_known;
        self.comm == name || executable == Some(name) || is_cut && name.starts_with(&self.comm)
    }

    /// Returns the names of the thread and of the executable, or one name if both are the same.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        let executable = self.executable.as_deref();
        let other = executable.filter(|executable| *executable != self.comm);
        std::iter::once(&*self.comm).chain(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_the_kernel_cut_off_is_still_one() {
        let names = ProcessNames {
            pid: 1,
            comm: "systemd-timesyn".to_owned(),
            executable: None,
        };
        assert!(names.has("systemd-timesyncd") && names.has("systemd-timesyn"));
        assert!(!names.has("systemd-time") && !names.has("systemd"));
        let other = ProcessNames {
            executable: Some("ruby3.1".to_owned()),
            ..names
        };
        assert!(other.has("ruby3.1") && !other.has("ruby3"));
        let exporter = ProcessNames {
            comm: "postgres-export".to_owned(),
            executable: Some("postgres-exporter-b".to_owned()),
            ..other.clone()
        };
        assert!(exporter.has("postgres-exporter-b") && !exporter.has("postgres-exporter-a"));
        assert_eq!(
            other.all().collect::<Vec<_>>(),
            ["systemd-timesyn", "ruby3.1"]
        );
    }
}
