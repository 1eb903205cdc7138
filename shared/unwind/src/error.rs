//! Why a file gives no table.

use std::io;

/// Why a file gives no table.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading failed.
    #[error("cannot read {size} bytes at offset {offset:#x} ({what}): {source}")]
    Read {
        /// What was read.
        what: &'static str,
        /// Where in the file.
        offset: u64,
        /// How many bytes.
        size: u64,
        /// What the system said.
        source: io::Error,
    },
    /// Not an ELF file, or one for another processor.
    #[error(
        "not an ELF file for {} (64 bits, little endian)",
        process::ARCHITECTURE
    )]
    Unsupported,
    /// Something says to be where the file has no bytes.
    #[error("{what}: {size} bytes at offset {offset:#x} reach past the end of the file")]
    OutOfBounds {
        /// What was to be read.
        what: &'static str,
        /// Where in the file.
        offset: u64,
        /// How many bytes.
        size: u64,
    },
    /// More than any sane file has.
    #[error("{what}: {count} is more than the {limit} that are accepted")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        count: u64,
        /// How much may be.
        limit: u64,
    },
    /// A compressed section that cannot be decompressed.
    #[error("{what} cannot be decompressed: {reason}")]
    Compressed {
        /// Name of the section.
        what: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl Error {
    /// `Err` if `count` is above `limit`.
    pub(crate) fn limit(what: &'static str, count: u64, limit: u64) -> Result<(), Error> {
        if count > limit {
            return Err(Error::TooLarge { what, count, limit });
        }
        Ok(())
    }
}
