//! Sources of a file's bytes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::error::Error;

/// Maximum number of bytes that are read at once. Callers have stricter bounds.
const READ_LIMIT: u64 = 512 << 20;

/// Bytes at offsets, such as those of a file or of an image in memory.
///
/// Files are read and never mapped. Their owners may truncate them at any time, and a mapping would
/// then raise SIGBUS.
pub trait Source {
    /// Reads bytes at `offset` into `buffer`. Returns the number of bytes read, which is 0 at the
    /// end.
    ///
    /// # Errors
    /// The bytes cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Returns the size in bytes.
    ///
    /// # Errors
    /// The size is unknown.
    fn size(&self) -> io::Result<u64>;

    /// Charges for bytes, before the caller reads or decompresses them.
    ///
    /// # Errors
    /// The source refuses the bytes. The caller must not read them then.
    fn charge(&self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }
}

impl<S: Source + ?Sized> Source for &S {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, buffer)
    }

    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }

    fn charge(&self, bytes: u64) -> io::Result<()> {
        (**self).charge(bytes)
    }
}

impl Source for File {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl Source for [u8] {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.get(offset..));
        let rest = rest.unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl Source for Vec<u8> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.as_slice().read_at(offset, buffer)
    }

    fn size(&self) -> io::Result<u64> {
        self.as_slice().size()
    }
}

/// Source that is read only within the size that it had at first.
pub(crate) struct Bounded<S> {
    pub(crate) source: S,
    size: u64,
}

impl<S: Source> Bounded<S> {
    pub(crate) fn new(source: S) -> Result<Bounded<S>, Error> {
        let size = source.size().map_err(|error| Error::Read {
            what: "size of the file",
            offset: 0,
            size: 0,
            source: error,
        })?;
        Ok(Bounded { source, size })
    }

    /// Returns the size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Charges for `size` bytes of `what` at `offset`.
    pub(crate) fn charge(&self, what: &'static str, offset: u64, size: u64) -> Result<(), Error> {
        self.source.charge(size).map_err(|source| Error::Read {
            what,
            offset,
            size,
            source,
        })
    }

    /// Reads exactly `size` bytes at `offset`.
    pub(crate) fn bytes(
        &self,
        what: &'static str,
        offset: u64,
        size: u64,
    ) -> Result<Vec<u8>, Error> {
        let out_of_bounds = || Error::OutOfBounds { what, offset, size };
        // A header may claim any size, so the size is checked before memory is allocated.
        if offset.checked_add(size).is_none_or(|end| end > self.size) {
            return Err(out_of_bounds());
        }
        Error::limit(what, size, READ_LIMIT)?;
        self.charge(what, offset, size)?;
        let mut bytes = vec![0; size as usize];
        match self.fill(offset, &mut bytes) {
            Ok(read) if read == bytes.len() => Ok(bytes),
            Ok(_) => Err(out_of_bounds()),
            Err(source) => Err(Error::Read {
                what,
                offset,
                size,
                source,
            }),
        }
    }

    /// Fills `buffer` from `offset`. Returns the number of bytes read, which is smaller at the end.
    /// The caller must have charged for these bytes.
    pub(crate) fn fill(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset.saturating_add(done as u64);
            match self.source.read_at(at, &mut buffer[done..]) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}
