//! Outputs that are written while the tool measures.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use tempfile::NamedTempFile;

use super::{Destination, Output, Place, failed_to_print, failed_to_write};

/// An output that is written while the tool measures. Until the data are whole, a file has a hidden
/// name that ends in `.partial`: the data of a killed tool can be read there.
#[derive(Debug)]
pub(crate) struct OpenOutput {
    path: Option<PathBuf>,
    writer: Writer,
}

#[derive(Debug)]
enum Writer {
    Stdout(BufWriter<io::Stdout>),
    /// A device or a pipe.
    Stream(BufWriter<File>),
    File(BufWriter<File>, Partial),
}

/// A file that is not whole yet.
#[derive(Debug)]
struct Partial {
    temporary: NamedTempFile,
    /// Mode of the file that it replaces.
    mode: Option<u32>,
    /// True if it must not replace a file.
    is_new: bool,
    place: Place,
}

impl Output {
    /// Opens the output for data that come piece by piece.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn open(self) -> anyhow::Result<OpenOutput> {
        let Some(path) = self.path else {
            return Ok(OpenOutput {
                path: None,
                writer: Writer::Stdout(BufWriter::new(io::stdout())),
            });
        };
        let failed = |error: io::Error| failed_to_write(&path, &error);
        let writer = match Destination::open(&path)? {
            Destination::Stream(place) => {
                let file = place.open_stream().map_err(failed)?;
                Writer::Stream(BufWriter::new(file))
            }
            Destination::Regular { mode, place, .. } => {
                let name = path.file_name().unwrap_or_default();
                let temporary = tempfile::Builder::new()
                    .prefix(&format!(".{}-", name.to_string_lossy()))
                    .suffix(".partial")
                    // The umask applies, as for any new file.
                    .permissions(Permissions::from_mode(0o666))
                    .tempfile_in(place.folder())
                    .map_err(failed)?;
                let file = temporary.as_file().try_clone().map_err(failed)?;
                let partial = Partial {
                    temporary,
                    mode,
                    is_new: self.is_new,
                    place,
                };
                Writer::File(BufWriter::new(file), partial)
            }
        };
        Ok(OpenOutput {
            path: Some(path),
            writer,
        })
    }
}

impl OpenOutput {
    /// Gives a whole file its name.
    ///
    /// # Errors
    /// The last data cannot be written, or the file cannot get its name.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        self.flush().map_err(|error| self.failed(&error))?;
        let (Some(path), Writer::File(_, partial)) = (self.path, self.writer) else {
            return Ok(());
        };
        partial
            .persist()
            .map_err(|error| failed_to_write(&path, &error))
    }

    /// Returns the error of a failed write, with its output.
    fn failed(&self, error: &io::Error) -> anyhow::Error {
        match &self.path {
            Some(path) => failed_to_write(path, error),
            None => failed_to_print(error),
        }
    }

    fn target(&mut self) -> &mut dyn Write {
        match &mut self.writer {
            Writer::Stdout(writer) => writer,
            Writer::Stream(writer) | Writer::File(writer, _) => writer,
        }
    }

    /// Adds the output to an error of its writer.
    fn explain(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), self.failed(error).to_string())
    }
}

impl Partial {
    fn persist(self) -> io::Result<()> {
        if let Some(mode) = self.mode {
            let permissions = Permissions::from_mode(mode);
            self.temporary.as_file().set_permissions(permissions)?;
        }
        let persisted = if self.is_new {
            self.temporary.persist_noclobber(self.place.path())
        } else {
            self.temporary.persist(self.place.path())
        };
        persisted.map_err(|error| error.error)?;
        Ok(())
    }
}

impl Write for OpenOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.target().write(bytes);
        written.map_err(|error| self.explain(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.target().flush();
        flushed.map_err(|error| self.explain(&error))
    }
}
