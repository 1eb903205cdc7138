//! Unpacks what ELF files keep packed.
//!
//! The files belong to others: a size that is claimed is checked before anything is
//! unpacked, and the caller charges it or refuses it.

use std::io::{Cursor, Read};
use std::num::NonZeroUsize;

use xz4rust::{XzDecoder, XzReader};

/// Bytes that one packed byte becomes at most, a bound above which there is neither debug
/// information nor a symbol table: compilers' becomes 3 to 20.
const MOST_UNPACKED: u64 = 100;
/// Maximum bytes of an xz dictionary. `xz` has 8 MiB unless it is asked for more.
const MOST_DICTIONARY: usize = 32 << 20;

/// `ch_type` in the header of a packed section.
const ELFCOMPRESS_ZLIB: u32 = 1;
const ELFCOMPRESS_ZSTD: u32 = 2;

/// Header before the packed bytes of a section.
#[derive(Clone, Copy, Debug)]
pub enum Header {
    /// `Elf64_Chdr`: the section has `SHF_COMPRESSED` in a file of 64 bits.
    Elf64,
    /// `Elf32_Chdr`: the same in a file of 32 bits.
    Elf32,
    /// `ZLIB` and the size as a big-endian number: a `.zdebug_…` section of GNU tools before
    /// the gABI had compressed sections.
    Gnu,
}

/// A packed section. Nothing of it has been unpacked yet.
#[derive(Debug)]
pub struct Section<'b> {
    kind: u32,
    size: u64,
    data: &'b [u8],
}

impl<'b> Section<'b> {
    /// Reads the header of a section from all of its bytes.
    ///
    /// # Errors
    /// Why there is no such header.
    pub fn parse(bytes: &'b [u8], header: Header) -> Result<Section<'b>, &'static str> {
        let length = match header {
            Header::Elf64 => 24,
            Header::Elf32 | Header::Gnu => 12,
        };
        let (fields, data) = bytes
            .split_at_checked(length)
            .ok_or("it ends within its header")?;
        let word = |at: usize| u32::from_le_bytes(array(fields, at));
        let (kind, size) = match header {
            Header::Elf64 => (word(0), u64::from_le_bytes(array(fields, 8))),
            Header::Elf32 => (word(0), word(4).into()),
            Header::Gnu if fields.starts_with(b"ZLIB") => {
                (ELFCOMPRESS_ZLIB, u64::from_be_bytes(array(fields, 4)))
            }
            Header::Gnu => return Err("its header does not begin with ZLIB"),
        };
        Ok(Section { kind, size, data })
    }

    /// Returns the number of unpacked bytes that the header claims.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether the header claims more than such a section can unpack to.
    pub fn is_implausible(&self) -> bool {
        self.size / MOST_UNPACKED > self.data.len() as u64
    }

    /// Unpacks the section, into as much memory as [`Section::size`] says.
    ///
    /// # Errors
    /// Why it cannot be unpacked.
    pub fn unpack(&self) -> Result<Vec<u8>, &'static str> {
        let size = usize::try_from(self.size).map_err(|_| "its size is no size of memory")?;
        let unpacked = match self.kind {
            ELFCOMPRESS_ZLIB => {
                miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(self.data, size).ok()
            }
            ELFCOMPRESS_ZSTD => zstd::bulk::decompress(self.data, size).ok(),
            _ => return Err("its algorithm is neither zlib nor zstd"),
        };
        unpacked
            .filter(|unpacked| unpacked.len() == size)
            .ok_or("its data do not unpack to the size that its header gives")
    }
}

/// Reads an xz file, as which `.gnu_debugdata` holds an ELF file. It ends with an error where
/// more than a hundred times as many bytes as are packed would come out.
pub fn read_xz(bytes: Vec<u8>) -> impl Read {
    const BUFFER: NonZeroUsize = NonZeroUsize::new(8 << 10).unwrap();
    let decoder = XzDecoder::in_heap_with_alloc_dict_size(0, MOST_DICTIONARY);
    let left = (bytes.len() as u64).saturating_mul(MOST_UNPACKED);
    let bytes = Cursor::new(bytes);
    Bounded {
        inner: XzReader::new_with_buffer_size_and_decoder(bytes, BUFFER, decoder),
        left,
    }
}

struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| std::io::Error::other("it unpacks to implausibly many bytes"))?;
        Ok(read)
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found.copied().unwrap_or([0; N])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn sections_unpack_to_what_was_packed() {
        let text = b"text ".repeat(100);
        let zlib = miniz_oxide::deflate::compress_to_vec_zlib(&text, 6);
        let zstd = zstd::bulk::compress(&text, 0).unwrap();
        let wide = |kind: u32| {
            let words = [u64::from(kind), text.len() as u64, 1];
            words.map(u64::to_le_bytes).concat()
        };
        let narrow = [ELFCOMPRESS_ZLIB, text.len() as u32, 1].map(u32::to_le_bytes);
        let gnu = [&b"ZLIB"[..], &(text.len() as u64).to_be_bytes()].concat();
        for (header, start, data) in [
            (Header::Elf64, wide(ELFCOMPRESS_ZLIB), &zlib),
            (Header::Elf64, wide(ELFCOMPRESS_ZSTD), &zstd),
            (Header::Elf32, narrow.concat(), &zlib),
            (Header::Gnu, gnu, &zlib),
        ] {
            let bytes = [&start[..], data].concat();
            let section = Section::parse(&bytes, header).unwrap();
            assert!(!section.is_implausible());
            assert_eq!(section.unpack().unwrap(), text, "{header:?}");
            // Another size, another algorithm, and cut short.
            let other_size = Section {
                size: 499,
                ..section
            };
            assert!(other_size.unpack().is_err());
            let implausible = Section {
                size: 1 << 20,
                ..other_size
            };
            assert!(implausible.is_implausible());
            let unknown = Section {
                kind: 3,
                size: 500,
                ..implausible
            };
            assert!(unknown.unpack().is_err());
            assert!(Section::parse(&bytes[..11], header).is_err());
        }
    }

    fn xz(options: &[&str], bytes: &[u8]) -> Vec<u8> {
        let mut command = Command::new("xz");
        let piped = command.arg("-c").args(options).stdin(Stdio::piped());
        let mut child = piped.stdout(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let bytes = bytes.to_vec();
        let writer = std::thread::spawn(move || input.write_all(&bytes).unwrap());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.status.success());
        output.stdout
    }

    #[test]
    fn xz_files_of_any_options_are_read_but_those_that_grow_without_end() {
        let bytes: Vec<u8> = (0..200_000_u32)
            .flat_map(|n| (n / 7).to_le_bytes())
            .collect();
        for options in [
            &["-6"][..],
            &["-0", "--check=crc32"],
            &["-T2", "--block-size=65536"],
        ] {
            let mut read = Vec::new();
            let packed = xz(options, &bytes);
            read_xz(packed.clone()).read_to_end(&mut read).unwrap();
            assert!(read == bytes, "{options:?}");
            let cut = packed[..packed.len() / 2].to_vec();
            assert!(read_xz(cut).read_to_end(&mut Vec::new()).is_err());
        }
        let bomb = xz(&["-6"], &vec![0; 8 << 20]);
        let mut read = Vec::new();
        assert!(read_xz(bomb.clone()).read_to_end(&mut read).is_err());
        assert!(read.len() as u64 <= MOST_UNPACKED * bomb.len() as u64);
    }
}
