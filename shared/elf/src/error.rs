//! Errors of reading a file.

use std::io;

/// Reason why a file, or a part of it, cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The source cannot read the bytes, or refuses to.
    #[error("cannot read {size} bytes at offset {offset:#x} ({what}): {source}")]
    Read {
        /// Name of the structure.
        what: &'static str,
        /// Offset in the file, in bytes.
        offset: u64,
        /// Number of bytes.
        size: u64,
        /// Error of the source.
        source: io::Error,
    },
    /// The file is not a little-endian ELF file.
    #[error("not a little-endian ELF file")]
    NotElf,
    /// A structure is invalid.
    #[error("{what}: {reason}")]
    Damaged {
        /// Name of the structure.
        what: &'static str,
        /// Fault of the structure.
        reason: &'static str,
    },
    /// A structure refers to a place that is outside of the file.
    #[error("{what}: {size} bytes at offset {offset:#x} reach past the end of the file")]
    OutOfBounds {
        /// Name of the structure.
        what: &'static str,
        /// Offset in the file, in bytes.
        offset: u64,
        /// Number of bytes.
        size: u64,
    },
    /// A file claims more than any real file has.
    #[error("{what}: {count} is more than the {limit} that are accepted")]
    TooLarge {
        /// Name of the structures, or of the contents.
        what: &'static str,
        /// Number of structures, or of bytes.
        count: u64,
        /// Maximum that is accepted.
        limit: u64,
    },
    /// Compressed contents cannot be decompressed.
    #[error("{what} cannot be decompressed: {reason}")]
    Compressed {
        /// Name of the section.
        what: &'static str,
        /// Fault of the contents.
        reason: &'static str,
    },
    /// Compressed contents claim a size to which they cannot expand.
    #[error("{what} cannot be decompressed: it claims an implausible size")]
    Implausible {
        /// Name of the section.
        what: &'static str,
    },
}

impl Error {
    /// Returns an error if `count` is larger than `limit`.
    pub(crate) fn limit(what: &'static str, count: u64, limit: u64) -> Result<(), Error> {
        if count > limit {
            return Err(Error::TooLarge { what, count, limit });
        }
        Ok(())
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = match &error {
            Error::Read { source, .. } => source.kind(),
            Error::OutOfBounds { .. } => io::ErrorKind::UnexpectedEof,
            _ => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}
