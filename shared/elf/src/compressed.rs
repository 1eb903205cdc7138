//! Compressed sections: `SHF_COMPRESSED` of the gABI, and `.zdebug_…` of older GNU tools.
//!
//! This module checks the size in a header before anything is decompressed. The caller then charges
//! for that size or refuses it.

pub(crate) mod xz;

use crate::error::Error;
use crate::layout::{ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD, Fields};

/// Maximum number of bytes to which one compressed byte expands. Debug information and symbol
/// tables of compilers expand by a factor of 3 to 20.
const EXPANSION_LIMIT: u64 = 100;

/// Header before the compressed bytes of a section.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Header {
    /// `Elf64_Chdr`, in front of a section with `SHF_COMPRESSED` in a 64-bit file.
    Elf64,
    /// `Elf32_Chdr`, in front of a section with `SHF_COMPRESSED` in a 32-bit file.
    Elf32,
    /// `ZLIB` and the size as a big-endian number, in front of a `.zdebug_…` section. GNU tools
    /// wrote such sections before the gABI had compressed sections.
    Gnu,
}

/// Compressed section that is not decompressed yet.
#[derive(Debug)]
pub(crate) struct Compressed<'b> {
    what: &'static str,
    kind: u32,
    size: u64,
    data: &'b [u8],
}

impl<'b> Compressed<'b> {
    /// Reads the header of the section `what` from all bytes of the section.
    ///
    /// # Errors
    /// The section has no such header, or the header claims more bytes than the section can expand
    /// to.
    pub(crate) fn parse(
        what: &'static str,
        bytes: &'b [u8],
        header: Header,
    ) -> Result<Compressed<'b>, Error> {
        let length = match header {
            Header::Elf64 => 24,
            Header::Elf32 | Header::Gnu => 12,
        };
        let damaged = |reason| Error::Compressed { what, reason };
        let (fields, data) = bytes
            .split_at_checked(length)
            .ok_or(damaged("it ends within its header"))?;
        let numbers = Fields(fields);
        let (kind, size) = match header {
            Header::Elf64 => (numbers.u32(0), numbers.u64(8)),
            Header::Elf32 => (numbers.u32(0), numbers.u32(4).into()),
            Header::Gnu if fields.starts_with(b"ZLIB") => {
                (ELFCOMPRESS_ZLIB, numbers.u64(4).swap_bytes())
            }
            Header::Gnu => return Err(damaged("its header does not begin with ZLIB")),
        };
        if size / EXPANSION_LIMIT > data.len() as u64 {
            return Err(Error::Implausible { what });
        }
        Ok(Compressed {
            what,
            kind,
            size,
            data,
        })
    }

    /// Returns the number of decompressed bytes that the header claims.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Decompresses the section. The result has [`Compressed::size`] bytes.
    ///
    /// # Errors
    /// The algorithm is unknown, or the data do not have the size in the header.
    pub(crate) fn decompress(&self) -> Result<Vec<u8>, Error> {
        let what = self.what;
        let damaged = |reason| Error::Compressed { what, reason };
        let size = usize::try_from(self.size);
        let size = size.map_err(|_| damaged("its size is no size of memory"))?;
        let bytes = match self.kind {
            ELFCOMPRESS_ZLIB => {
                miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(self.data, size).ok()
            }
            ELFCOMPRESS_ZSTD => zstd::bulk::decompress(self.data, size).ok(),
            _ => return Err(damaged("its algorithm is neither zlib nor zstd")),
        };
        bytes
            .filter(|bytes| bytes.len() == size)
            .ok_or(damaged("its data have another size than its header gives"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sections_unpack_to_what_was_packed() {
        let text = b"text ".repeat(100);
        let zlib = miniz_oxide::deflate::compress_to_vec_zlib(&text, 6);
        let zstd = zstd::bulk::compress(&text, 0).unwrap();
        let wide = |kind: u32, size: u64| {
            let words = [u64::from(kind), size, 1];
            words.map(u64::to_le_bytes).concat()
        };
        let narrow = |kind: u32, size: u64| [kind, size as u32, 1].map(u32::to_le_bytes).concat();
        let gnu = |_: u32, size: u64| [&b"ZLIB"[..], &size.to_be_bytes()].concat();
        type Start<'s> = &'s dyn Fn(u32, u64) -> Vec<u8>;
        for (header, start, kind, data) in [
            (Header::Elf64, &wide as Start<'_>, ELFCOMPRESS_ZLIB, &zlib),
            (Header::Elf64, &wide, ELFCOMPRESS_ZSTD, &zstd),
            (Header::Elf32, &narrow, ELFCOMPRESS_ZLIB, &zlib),
            (Header::Gnu, &gnu, ELFCOMPRESS_ZLIB, &zlib),
        ] {
            let read = |kind: u32, size: u64| {
                let bytes = [&start(kind, size)[..], data].concat();
                Compressed::parse("section", &bytes, header)?.decompress()
            };
            assert_eq!(read(kind, 500).unwrap(), text, "{header:?}");
            // Another size, an implausible size, another algorithm, and a truncated header.
            let other_size = read(kind, 499);
            assert!(matches!(other_size, Err(Error::Compressed { .. })));
            let implausible = read(kind, 1 << 20);
            assert!(matches!(implausible, Err(Error::Implausible { .. })));
            if !matches!(header, Header::Gnu) {
                assert!(matches!(read(3, 500), Err(Error::Compressed { .. })));
            }
            let cut = &start(kind, 500)[..11];
            assert!(Compressed::parse("section", cut, header).is_err());
        }
    }
}
