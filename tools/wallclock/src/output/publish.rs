//! Puts files in their place: all of them, or none.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use cli::Place;
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, open, renameat_with};
use rustix::io::Errno;
use tempfile::TempDir;

use super::files::{Names, with_ending};

/// Checks before measuring that the files can be put in their place.
///
/// # Errors
/// Returns an error if the folder exists, if a folder has a file's name, or if the folder around
/// them cannot be written to.
pub(crate) fn check(names: &Names) -> anyhow::Result<()> {
    if names.folder.symlink_metadata().is_ok() {
        bail!(
            "`{}` already exists; name another prefix with -o, or move it away",
            names.folder.display()
        );
    }
    for file in names.prefixed_files() {
        if file.is_dir() {
            bail!(
                "`{}` is a folder; name another prefix with -o",
                file.display()
            );
        }
    }
    // The temporary folder is removed at once, so none is left behind if measuring fails.
    Staging::new(&names.folder).map(drop)
}

/// Temporary folder beside the destination, into which all files are written first. The folder is
/// removed with its files unless the files are put in their place. Both folders stay open, so a
/// user with the right to rename them cannot redirect the files.
pub(crate) struct Staging {
    folder: TempDir,
    inside: OwnedFd,
    /// Destination, in the folder that also contains the temporary folder.
    place: Place,
}

impl Staging {
    /// Creates the temporary folder, and names it after the destination.
    ///
    /// # Errors
    /// Returns an error if the folder around it does not exist or cannot be written to.
    pub(crate) fn new(destination: &Path) -> anyhow::Result<Staging> {
        let mut prefix = destination.file_name().unwrap_or_default().to_owned();
        prefix.push(".tmp");
        let make = || {
            let place = Place::find(destination)?;
            let folder = tempfile::Builder::new()
                .prefix(&prefix)
                // The umask applies, as for any new folder.
                .permissions(Permissions::from_mode(0o777))
                .tempdir_in(place.folder())?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let inside = open(folder.path(), flags, Mode::empty())?;
            Ok(Staging {
                folder,
                inside,
                place,
            })
        };
        make().map_err(|error| {
            let parent = destination.parent().filter(|path| *path != Path::new(""));
            anyhow!(
                "cannot write into `{}`: {}; name a prefix in another folder with -o",
                parent.unwrap_or(Path::new(".")).display(),
                cli::reason(error_inside(&error))
            )
        })
    }

    /// Returns the path of a name inside, through the descriptor.
    fn path_inside(&self, name: impl AsRef<Path>) -> PathBuf {
        Path::new(&format!("/proc/self/fd/{}", self.inside.as_raw_fd())).join(name)
    }

    /// Creates a folder inside.
    ///
    /// # Errors
    /// Returns an error if the system cannot create it.
    pub(crate) fn make_folder(&self, name: &Path) -> anyhow::Result<()> {
        fs::create_dir(self.path_inside(name)).map_err(|error| failed(name, &error))
    }

    /// Writes a file inside.
    ///
    /// # Errors
    /// Returns the first error of creating the file, of `body`, or of writing.
    pub(crate) fn write(
        &self,
        name: &Path,
        body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let write = || {
            let file = File::create_new(self.path_inside(name))?;
            let mut writer = BufWriter::with_capacity(1 << 16, file);
            let outcome = body(&mut writer).and_then(|()| writer.flush());
            // After an error, dropping the buffer must not write again.
            let _ = writer.into_parts();
            outcome
        };
        write().map_err(|error| failed(name, &error))
    }

    /// Puts the whole folder in its place. No file or folder may exist there yet.
    ///
    /// # Errors
    /// Returns an error if a file or folder exists there by now, or if the system cannot rename the
    /// folder.
    pub(crate) fn put_folder(self, destination: &Path) -> anyhow::Result<()> {
        let (staged, place) = (self.folder.path(), self.place.path());
        match renameat_with(CWD, staged, CWD, &place, RenameFlags::NOREPLACE) {
            // Some file systems do not support RENAME_NOREPLACE.
            Err(Errno::INVAL | Errno::NOSYS) if place.symlink_metadata().is_err() => {
                fs::rename(staged, place)
            }
            outcome => outcome.map_err(io::Error::from),
        }
        .map_err(|error| failed(destination, &error))?;
        // The folder has moved, so there is nothing to remove.
        let _ = self.folder.keep();
        Ok(())
    }

    /// Moves the staged files `name` + ending to `prefix` + ending, and replaces older files.
    ///
    /// # Errors
    /// Returns an error for the first file that cannot be moved, or if the temporary folder cannot
    /// be removed.
    pub(crate) fn put_files(
        self,
        name: &str,
        prefix: &Path,
        endings: &[&str],
    ) -> anyhow::Result<Vec<PathBuf>> {
        let mut placed = Vec::new();
        for ending in endings {
            let staged = self.path_inside(format!("{name}{ending}"));
            let destination = with_ending(prefix, ending);
            let placed_at = with_ending(&self.place.path(), ending);
            fs::rename(staged, placed_at).map_err(|error| failed(&destination, &error))?;
            placed.push(destination);
        }
        self.folder
            .close()
            .context("cannot remove the temporary folder")?;
        Ok(placed)
    }
}

fn failed(name: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!(
        "cannot write `{}`: {}; free some space, or name a prefix elsewhere with -o",
        name.display(),
        cli::reason(error)
    )
}

/// Returns the system's own error. tempfile wraps that error to add the path.
fn error_inside(error: &io::Error) -> &io::Error {
    error
        .get_ref()
        .and_then(|wrapper| std::error::Error::source(wrapper))
        .and_then(|source| source.downcast_ref())
        .unwrap_or(error)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(folder: &TempDir) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn planned(folder: &TempDir, name: &str) -> Names {
        Names::new(Some(&folder.path().join(name)), &[1], 0).unwrap()
    }

    #[test]
    fn what_is_in_the_way_is_told_before_and_left_alone() {
        let folder = TempDir::new().unwrap();
        assert!(check(&planned(&folder, "run")).is_ok());
        assert!(names(&folder).is_empty());
        fs::create_dir(folder.path().join("run")).unwrap();
        fs::create_dir(folder.path().join("other.svg")).unwrap();
        fs::write(folder.path().join("old.svg"), "old").unwrap();
        let message = |name| check(&planned(&folder, name)).unwrap_err().to_string();
        assert!(message("run").contains("already exists; name another"));
        assert!(message("other").contains("other.svg` is a folder"));
        assert!(message("missing/run").ends_with(
            "missing`: No such file or directory; name a prefix in another folder with -o"
        ));
        assert!(check(&planned(&folder, "old")).is_ok());
        let proc = Names::new(Some(Path::new("/proc/run")), &[1], 0).unwrap();
        assert!(
            check(&proc)
                .unwrap_err()
                .to_string()
                .contains("cannot write into `/proc`")
        );
    }

    #[test]
    fn a_folder_appears_whole() {
        let folder = TempDir::new().unwrap();
        let destination = folder.path().join("run");
        let staging = Staging::new(&destination).unwrap();
        staging.make_folder(Path::new("pid1")).unwrap();
        staging
            .write(Path::new("pid1/a"), |writer| writer.write_all(b"text"))
            .unwrap();
        assert!(names(&folder)[0].starts_with("run.tmp"));
        staging.put_folder(&destination).unwrap();
        assert_eq!(names(&folder), ["run"]);
        assert_eq!(fs::read(destination.join("pid1/a")).unwrap(), b"text");
    }

    #[test]
    fn a_folder_that_came_to_be_is_not_replaced() {
        let folder = TempDir::new().unwrap();
        let destination = folder.path().join("run");
        let staging = Staging::new(&destination).unwrap();
        fs::create_dir(&destination).unwrap();
        assert!(staging.put_folder(&destination).is_err());
        assert_eq!(names(&folder), ["run"]);
    }

    #[test]
    fn failure_leaves_nothing() {
        let folder = TempDir::new().unwrap();
        let staging = Staging::new(&folder.path().join("run")).unwrap();
        let full = |_: &mut dyn Write| Err(Errno::NOSPC.into());
        let message = staging.write(Path::new("a"), full).unwrap_err().to_string();
        assert!(message.contains("cannot write `a`: No space left on device"));
        drop(staging);
        assert!(names(&folder).is_empty());
    }
}
