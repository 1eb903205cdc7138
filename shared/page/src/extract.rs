//! Extraction of the capture from a page.
//!
//! A page may come from anywhere. The reader looks for the data block and nothing else, runs
//! nothing, and hands the block to the reader of captures, whose bounds grow with the bytes of the
//! block.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use base64::engine::general_purpose::STANDARD;
use base64::read::DecoderReader;
use capture::{Error, Partial};
use flate2::read::ZlibDecoder;

use crate::embed::{BEFORE, CAPTURE};

/// Maximum bytes of a tag. The tags of data blocks are shorter.
const LONGEST_TAG: u64 = 256;

/// The capture of a page.
#[derive(Debug)]
pub struct Extracted {
    /// The capture: of a page that compares two, the later one.
    pub capture: Partial,
    /// Set if the page compares two captures.
    pub is_comparison: bool,
}

/// Returns whether a file that begins with these bytes is a page and not a capture.
#[must_use]
pub fn is_page(start: &[u8]) -> bool {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    start.trim_ascii_start().first() == Some(&b'<')
}

/// Reads the capture of a page.
///
/// # Errors
/// The page cannot be read, it has no data block, or a later version of the suite wrote it. A
/// capture that is cut off or damaged is an error inside [`Extracted::capture`].
pub fn extract(mut page: impl BufRead) -> Result<Extracted, Error> {
    let mut is_comparison = false;
    while page.skip_until(b'<').map_err(Error::Read)? > 0 {
        let mut tag = Vec::new();
        let mut start = page.by_ref().take(LONGEST_TAG);
        start.read_until(b'>', &mut tag).map_err(Error::Read)?;
        match block(&tag) {
            Some((BEFORE, _)) => is_comparison = true,
            Some((_, version)) => {
                return Ok(Extracted {
                    capture: read_block(page, version)?,
                    is_comparison,
                });
            }
            None => {}
        }
    }
    Err(Error::NotACapture)
}

/// Returns the ID and the version of the data block that a tag begins.
fn block(tag: &[u8]) -> Option<(&'static str, u8)> {
    let tag = std::str::from_utf8(tag).ok()?;
    let attributes = tag.strip_prefix("script ")?.strip_suffix('>')?;
    let value = |name: &str| {
        let mut words = attributes.split_ascii_whitespace();
        words.find_map(|word| {
            let value = word.strip_prefix(name)?.strip_prefix('=')?;
            Some(value.trim_matches('"'))
        })
    };
    let id = value("id")?;
    let id = [CAPTURE, BEFORE].into_iter().find(|known| *known == id)?;
    // A version that is no byte belongs to no capture.
    let version = value("data-version").and_then(|version| version.parse().ok());
    Some((id, version.unwrap_or(0)))
}

fn read_block(page: impl BufRead, version: u8) -> Result<Partial, Error> {
    let packed = Cell::new(0);
    let is_closed = Cell::new(false);
    let text = Text {
        page,
        packed: &packed,
        is_closed: &is_closed,
    };
    let bytes = DecoderReader::new(text, &STANDARD);
    let mut records = BufReader::new(Unpacked(ZlibDecoder::new(bytes)));
    let mut partial = capture::read_records(version, &mut records, &packed)?;
    // Bytes after the compressed data belong to no capture.
    let mut rest = records.into_inner().0.into_inner();
    let has_more = partial.error.is_none() && !matches!(rest.read(&mut [0]), Ok(0));
    if has_more {
        partial.error = Some(Error::Damaged("something comes after its end"));
    }
    if partial.error.is_some() && !is_closed.get() {
        // The page may end inside the block. The text that is left is not kept.
        io::copy(&mut rest.into_inner(), &mut io::sink()).map_err(Error::Read)?;
        if !is_closed.get() {
            partial.error = Some(Error::CutOff);
        }
    }
    Ok(partial)
}

/// The text of a data block, up to the next tag, without white space.
struct Text<'a, R> {
    page: R,
    /// Number of bytes read.
    packed: &'a Cell<u64>,
    /// Set once the next tag was seen.
    is_closed: &'a Cell<bool>,
}

impl<R: BufRead> Read for Text<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled == 0 && !self.is_closed.get() && !buffer.is_empty() {
            let bytes = self.page.fill_buf()?;
            if bytes.is_empty() {
                break;
            }
            let mut used = 0;
            for &byte in bytes {
                if byte == b'<' {
                    self.is_closed.set(true);
                    break;
                }
                if filled == buffer.len() {
                    break;
                }
                used += 1;
                if !byte.is_ascii_whitespace() {
                    buffer[filled] = byte;
                    filled += 1;
                }
            }
            self.page.consume(used);
            self.packed.set(self.packed.get() + used as u64);
        }
        Ok(filled)
    }
}

/// A reader that reports bytes that cannot be unpacked as errors of the kind `Other`.
struct Unpacked<R>(R);

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            ErrorKind::InvalidData | ErrorKind::InvalidInput => io::Error::other(error),
            _ => error,
        })
    }
}
