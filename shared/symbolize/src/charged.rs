//! ELF files of targets. Reads of them are charged to an [`Allowance`].

use std::fs::File;
use std::io::Result;
use std::os::unix::fs::FileExt;

use elf::Source;

use crate::budget::Allowance;

/// ELF file whose reads are charged to an [`Allowance`].
pub(crate) type Elf<'f> = elf::Elf<Charged<'f>>;

/// File, and the allowance that is charged for bytes that are read and decompressed.
#[derive(Clone, Copy)]
pub(crate) struct Charged<'f> {
    file: &'f File,
    /// Allowance that is charged for the file.
    pub(crate) allowance: &'f Allowance,
}

impl Source for Charged<'_> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        FileExt::read_at(self.file, buffer, offset)
    }

    fn size(&self) -> Result<u64> {
        Source::size(self.file)
    }

    fn charge(&self, bytes: u64) -> Result<()> {
        self.allowance.take(bytes)
    }
}

/// Reads the headers of a file.
///
/// # Errors
/// The file is not a little-endian ELF file, or a header cannot be read.
pub(crate) fn read<'f>(file: &'f File, allowance: &'f Allowance) -> Result<Elf<'f>> {
    Ok(Elf::read(Charged { file, allowance })?)
}

/// Returns the result of a read. Records contents that claim an implausible decompressed size as
/// left out, because they take too much work.
///
/// # Errors
/// The error of the read. It is `QuotaExceeded` if the contents are left out.
pub(crate) fn check<T>(
    allowance: &Allowance,
    read: std::result::Result<T, elf::Error>,
) -> Result<T> {
    read.map_err(|error| match error {
        elf::Error::Implausible { .. } => allowance.refuse("a section is packed too well"),
        error => error.into(),
    })
}
