//! Compressed sections: `SHF_COMPRESSED` of the gABI, and `.zdebug_…` of older GNU tools.
//!
//! The size in a header is checked before anything is decompressed. The caller charges for it or
//! refuses it.

pub(crate) mod xz;

use crate::error::Error;
use crate::layout::{ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD, Fields};

/// Maximum bytes that one compressed byte becomes. Debug information and symbol tables of
/// compilers become 3 to 20 times as large.
const EXPANSION_LIMIT: u64 = 100;

/// Header before the compressed bytes of a section.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Header {
    /// `Elf64_Chdr`: the section has `SHF_COMPRESSED` in a file of 64 bits.
    Elf64,
    /// `Elf32_Chdr`: the same in a file of 32 bits.
    Elf32,
    /// `ZLIB` and the size as a big-endian number: a `.zdebug_…` section of GNU tools before
    /// the gABI had compressed sections.
    Gnu,
}

/// A compressed section. Nothing of it has been decompressed yet.
#[derive(Debug)]
pub(crate) struct Compressed<'b> {
    what: &'static str,
    kind: u32,
    size: u64,
    data: &'b [u8],
}

impl<'b> Compressed<'b> {
    /// Reads the header of the section `what` from all of its bytes.
    ///
    /// # Errors
    /// If there is no such header, or it claims more than such a section can decompress to.
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
    /// If the algorithm is unknown, or the data do not have the size in the header.
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
            // Another size, an implausible size, another algorithm, and a header that is cut
            // short.
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
