//! Errors of building an unwind table.

/// Reason why a file gives no table.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read, or is not what it claims to be.
    #[error(transparent)]
    Elf(#[from] elf::Error),
    /// The file is not an ELF file, or is for another processor.
    #[error(
        "not an ELF file for {} (64 bits, little endian)",
        process::ARCHITECTURE
    )]
    Unsupported,
    /// The file exceeds a limit that no real file reaches.
    #[error("{what}: {count} is more than the {limit} that are accepted")]
    TooLarge {
        /// Name of the structures.
        what: &'static str,
        /// Number of structures, or of bytes.
        count: u64,
        /// Maximum that is accepted.
        limit: u64,
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
