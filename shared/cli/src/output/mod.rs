//! Output to standard output, or to a file that appears only once it is whole.

pub(crate) mod destinations;
pub(crate) mod diagnostics;
mod open;
mod place;
pub(crate) mod streamed;
mod terminal;

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, ErrorKind, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use rustix::fs::{Access, access};
use tempfile::NamedTempFile;

use self::place::Existing;
use crate::error::{Ending, reason};

pub(crate) use self::open::OpenOutput;
pub use self::place::Place;
pub use self::terminal::report_look;

/// The destination of a tool's data.
#[derive(Debug)]
pub struct Output {
    path: Option<PathBuf>,
    /// True if the file must not exist yet: the tool, not the user, chose its name.
    is_new: bool,
}

impl Output {
    /// Returns the output for a path; `None` and `-` mean standard output. The function checks at
    /// once that a file can be written, before the tool measures anything.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(path: Option<PathBuf>) -> anyhow::Result<Output> {
        let path = path.filter(|path| path != Path::new("-"));
        if let Some(path) = &path {
            // The temporary file is dropped at once, so that a tool that is killed while it
            // measures leaves nothing behind.
            drop(Destination::open(path)?);
        }
        Ok(Output {
            path,
            is_new: false,
        })
    }

    /// Returns the output for a new file whose name the tool chose. The function leaves an
    /// existing file or link alone.
    ///
    /// # Errors
    /// The path exists already, or the file cannot be written.
    pub fn create_new(path: PathBuf) -> anyhow::Result<Output> {
        if path.symlink_metadata().is_ok() {
            bail!(
                "cannot write `{}`: it exists already; name another file with -o",
                path.display()
            );
        }
        Ok(Output {
            is_new: true,
            ..Output::new(Some(path))?
        })
    }

    /// Returns whether the output is standard output.
    #[must_use]
    pub fn is_stdout(&self) -> bool {
        self.path.is_none()
    }

    /// Writes the output of `body`, buffered. A file appears under its name, and replaces an older
    /// one, only after all of it is written.
    ///
    /// # Errors
    /// The first write that fails.
    pub fn write(self, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
        match &self.path {
            Some(path) if self.is_new => write_new_file(path, body),
            Some(path) => write_file(path, body),
            None => write_stdout(body),
        }
    }
}

/// Collects data for an output file piece by piece, in a temporary file without a name on the
/// same file system.
#[derive(Debug)]
pub struct Spool {
    output: Output,
    path: PathBuf,
    file: File,
}

impl Spool {
    /// Returns a spool for a file; `None` for standard output, which needs none.
    ///
    /// # Errors
    /// No temporary file can be made in the file's folder.
    pub fn new(output: Output) -> anyhow::Result<Option<Spool>> {
        let Some(path) = output.path.clone() else {
            return Ok(None);
        };
        let place = Place::find(&path);
        let file = place.and_then(|place| tempfile::tempfile_in(place.folder()));
        let file = file.map_err(|error| failed_to_write(&path, &error))?;
        Ok(Some(Spool { output, path, file }))
    }

    /// Adds the output of `body`.
    ///
    /// # Errors
    /// A write fails.
    pub fn add(
        &mut self,
        body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        buffered(&self.file, body).map_err(|error| failed_to_write(&self.path, &error))
    }

    /// Writes the collected data to the file under its name.
    ///
    /// # Errors
    /// The same as for [`Output::write`].
    pub fn finish(self) -> anyhow::Result<()> {
        let mut file = self.file;
        file.rewind()
            .map_err(|error| failed_to_write(&self.path, &error))?;
        let copy = |writer: &mut dyn Write| io::copy(&mut file, writer).map(|_| ());
        self.output.write(copy)
    }
}

/// Writes a file that must not exist yet.
fn write_new_file(
    path: &Path,
    body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let failed = |error: io::Error| failed_to_write(path, &error);
    let place = Place::find(path).map_err(failed)?;
    let temporary = temporary_beside(&place).map_err(failed)?;
    buffered(temporary.as_file(), body).map_err(failed)?;
    temporary
        .persist_noclobber(place.path())
        .map_err(|error| failed(error.error))?;
    Ok(())
}

fn failed_to_write(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!(
        "cannot write `{}`: {}; {}",
        path.display(),
        reason(error),
        remedy(error)
    )
}

/// Makes a temporary file that can be renamed to a place.
fn temporary_beside(place: &Place) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".systemscope-")
        // The umask applies, as for any new file.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(place.folder())
}

/// Writes a file as [`Output::write`] does.
///
/// # Errors
/// The first write that fails.
pub fn write_file(
    path: &Path,
    body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let failed = |error: io::Error| failed_to_write(path, &error);
    match Destination::open(path)? {
        Destination::Stream(place) => {
            let file = place.open_stream().map_err(failed)?;
            buffered(file, body).map_err(failed)
        }
        Destination::Regular {
            place,
            temporary,
            mode,
        } => {
            buffered(temporary.as_file(), body).map_err(failed)?;
            if let Some(mode) = mode {
                let permissions = Permissions::from_mode(mode);
                let outcome = temporary.as_file().set_permissions(permissions);
                outcome.map_err(failed)?;
            }
            temporary
                .persist(place.path())
                .map_err(|error| failed(error.error))?;
            Ok(())
        }
    }
}

/// The file that a path leads to.
enum Destination {
    /// A device or a pipe, which is written directly.
    Stream(Place),
    /// A regular file. The temporary file beside it gets its name once all data is written. The new
    /// file keeps the `mode` of the file that it replaces, if the caller owns that file.
    Regular {
        temporary: NamedTempFile,
        mode: Option<u32>,
        place: Place,
    },
}

impl Destination {
    fn open(path: &Path) -> anyhow::Result<Destination> {
        let failed = |error: io::Error| failed_to_write(path, &error);
        let place = Place::find(path).map_err(failed)?;
        if place.existing_file() == Some(Existing::Folder) {
            bail!(
                "cannot write `{}`: it is a folder; name a file inside it",
                path.display()
            );
        }
        if place.existing_file().is_some() {
            // Renaming over a read-only file would succeed, against the owner's intention.
            access(place.path(), Access::WRITE_OK).map_err(|error| failed(error.into()))?;
        }
        let mode = match place.existing_file() {
            Some(Existing::Stream) => return Ok(Destination::Stream(place)),
            Some(Existing::File { mode }) => mode,
            _ => None,
        };
        let temporary = temporary_beside(&place).map_err(failed)?;
        Ok(Destination::Regular {
            temporary,
            mode,
            place,
        })
    }
}

fn write_stdout(body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let stdout = io::stdout().lock();
    buffered(stdout, body).map_err(|error| failed_to_print(&error))
}

fn failed_to_print(error: &io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::BrokenPipe => Ending::ClosedPipe.into(),
        _ => anyhow!(
            "cannot write to standard output: {}; {}",
            reason(error),
            remedy(error)
        ),
    }
}

/// Runs `body` over a buffer and flushes the buffer, so that no error is lost.
fn buffered(
    target: impl Write,
    body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(1 << 16, target);
    let outcome = body(&mut writer).and_then(|()| writer.flush());
    // After an error, dropping the buffer must not write the rest again.
    let _ = writer.into_parts();
    outcome
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => "create its folder first",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "name a file in a folder that you may write to"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "free some space, or name a file elsewhere"
        }
        ErrorKind::BrokenPipe => "keep its reader running until the end",
        _ => "name another file",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, chown, lchown, symlink};

    use tempfile::TempDir;

    use super::*;

    const NOBODY: u32 = 65534;

    fn names(folder: &TempDir) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn write(path: &Path, text: &str) -> anyhow::Result<()> {
        Output::new(Some(path.to_owned()))?.write(|writer| writer.write_all(text.as_bytes()))
    }

    #[test]
    fn what_comes_bit_by_bit_is_there_at_the_end_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for is_finished in [false, true] {
            let mut spool = Spool::new(Output::new(Some(path.clone())).unwrap())
                .unwrap()
                .unwrap();
            for word in ["one ", "two"] {
                spool
                    .add(|writer| writer.write_all(word.as_bytes()))
                    .unwrap();
                assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
            }
            if is_finished {
                spool.finish().unwrap();
            }
        }
        assert_eq!(fs::read_to_string(path).unwrap(), "one two");
        assert!(Spool::new(Output::new(None).unwrap()).unwrap().is_none());
    }

    #[test]
    fn whole_file_under_its_name_with_an_ordinary_files_mode() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("out.folded");
        let ordinary = folder.path().join("ordinary");
        fs::File::create(&ordinary).unwrap();
        let output = Output::new(Some(path.clone())).unwrap();
        assert_eq!(names(&folder), ["ordinary"]);
        output.write(|writer| writeln!(writer, "a;b 1")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a;b 1\n");
        let mode = |path| fs::metadata(path).unwrap().mode();
        assert_eq!(mode(&path), mode(&ordinary));
        assert_eq!(names(&folder), ["ordinary", "out.folded"]);
    }

    #[test]
    fn failure_leaves_the_old_file_and_nothing_else() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("out");
        write(&path, "old").unwrap();
        let error = write_file(&path, |writer| {
            writer.write_all(b"half")?;
            Err(io::Error::from_raw_os_error(libc::ENOSPC))
        });
        assert_eq!(
            error.unwrap_err().to_string(),
            format!(
                "cannot write `{}`: No space left on device; \
                 free some space, or name a file elsewhere",
                path.display()
            )
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(&folder), ["out"]);
    }

    #[test]
    fn unwritable_paths_are_told_before_anything_is_written() {
        let folder = TempDir::new().unwrap();
        let message = |path: &Path| Output::new(Some(path.to_owned())).unwrap_err().to_string();
        let missing = folder.path().join("missing/out");
        assert_eq!(
            message(&missing),
            format!(
                "cannot write `{}`: No such file or directory; create its folder first",
                missing.display()
            )
        );
        assert!(message(folder.path()).contains("is a folder"));
        assert!(message(Path::new("")).contains("cannot write ``"));
        assert!(message(&folder.path().join("..")).contains("is a folder"));
        assert!(message(Path::new("/proc/out")).contains("cannot write"));
        assert!(message(Path::new("/dev/null/out")).contains("create its folder first"));
    }

    #[test]
    fn a_file_whose_name_nobody_chose_replaces_nothing() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("out");
        let new = || Output::create_new(path.clone());
        let text = |text: &'static str| move |writer: &mut dyn Write| write!(writer, "{text}");
        let too_late = new().unwrap();
        new().unwrap().write(text("first")).unwrap();
        assert!(too_late.write(text("second")).is_err());
        let error = new().unwrap_err().to_string();
        assert!(error.contains("it exists already"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        fs::remove_file(&path).unwrap();
        symlink("nowhere", &path).unwrap();
        assert!(new().is_err());
    }

    #[test]
    fn symbolic_link_stays_and_its_file_is_replaced() {
        let folder = TempDir::new().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        write(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_link_of_another_user_is_not_followed() {
        let folder = TempDir::new().unwrap();
        let secret = folder.path().join("secret");
        write(&secret, "root's").unwrap();
        let (file, inside) = (folder.path().join("file"), folder.path().join("inside"));
        symlink(&secret, &file).unwrap();
        symlink(folder.path(), &inside).unwrap();
        for link in [&file, &inside] {
            lchown(link, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        for path in [&file, &inside.join("secret"), &inside.join("new")] {
            let error = write(path, "overwritten").unwrap_err().to_string();
            assert!(error.contains("a link of another user, whose ID is 65534; name another"));
            assert!(Output::create_new(path.clone()).is_err());
        }
        assert_eq!(fs::read_to_string(&secret).unwrap(), "root's");
        assert_eq!(names(&folder), ["file", "inside", "secret"]);
    }

    /// Opening the pipe would wait for a reader.
    #[test]
    fn a_pipe_of_another_user_is_refused_at_once() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("pipe");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        chown(&path, Some(NOBODY), None).unwrap();
        let error = write(&path, "x").unwrap_err().to_string();
        assert!(error.contains("a pipe of another user"), "{error}");
        chown(&path, Some(0), None).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read_to_string(path).unwrap()
        });
        write(&path, "one's own").unwrap();
        assert_eq!(reader.join().unwrap(), "one's own");
    }

    #[test]
    fn a_folder_that_is_swapped_for_a_link_changes_nothing() {
        let folder = TempDir::new().unwrap();
        let (chosen, moved, other) = (
            folder.path().join("chosen"),
            folder.path().join("moved"),
            folder.path().join("other"),
        );
        fs::create_dir(&chosen).unwrap();
        fs::create_dir(&other).unwrap();
        let Destination::Regular {
            temporary, place, ..
        } = Destination::open(&chosen.join("out")).unwrap()
        else {
            panic!("a file is no stream");
        };
        fs::rename(&chosen, &moved).unwrap();
        symlink(&other, &chosen).unwrap();
        temporary.persist(place.path()).unwrap();
        assert!(moved.join("out").exists());
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_mode() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("out");
        write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        write(&path, "new").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn errors_after_the_last_write_are_seen() {
        /// Accepts all data and fails at the flush, as a full disk may.
        struct Late;
        impl Write for Late {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Err(ErrorKind::StorageFull.into())
            }
        }
        assert!(buffered(Late, |writer| writer.write_all(b"x")).is_err());
    }
}
