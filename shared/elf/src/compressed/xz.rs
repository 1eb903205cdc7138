//! Reads xz files.

use std::io::{Cursor, Read};
use std::num::NonZeroUsize;

use xz4rust::{XzDecoder, XzReader};

use crate::compressed::EXPANSION_LIMIT;

/// Maximum size of an xz dictionary, in bytes. `xz` uses 8 MiB by default.
const DICTIONARY_LIMIT: usize = 32 << 20;

/// Returns a reader of the contents of an xz file. The reader fails where the contents exceed the
/// size that [`EXPANSION_LIMIT`] allows.
pub(crate) fn read(bytes: Vec<u8>) -> impl Read {
    const BUFFER: NonZeroUsize = NonZeroUsize::new(8 << 10).unwrap();
    let decoder = XzDecoder::in_heap_with_alloc_dict_size(0, DICTIONARY_LIMIT);
    let left = (bytes.len() as u64).saturating_mul(EXPANSION_LIMIT);
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
            .ok_or_else(|| std::io::Error::other("it decompresses to implausibly many bytes"))?;
        Ok(read)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

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
            let mut found = Vec::new();
            let packed = xz(options, &bytes);
            read(packed.clone()).read_to_end(&mut found).unwrap();
            assert!(found == bytes, "{options:?}");
            let cut = packed[..packed.len() / 2].to_vec();
            assert!(read(cut).read_to_end(&mut Vec::new()).is_err());
        }
        let bomb = xz(&["-6"], &vec![0; 8 << 20]);
        let mut found = Vec::new();
        assert!(read(bomb.clone()).read_to_end(&mut found).is_err());
        assert!(found.len() as u64 <= EXPANSION_LIMIT * bomb.len() as u64);
    }
}
