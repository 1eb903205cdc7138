//! Capture files (`*.scope`), which store a whole profile for later and for other machines.
//!
//! A file is [`MAGIC`], a byte with the version, and a zstd stream of the messages that
//! `capture.proto` describes. Concatenated files are one file with several captures.
//!
//! A file may come from anywhere. The reader checks every value. Its memory grows with the bytes
//! that it has read, never with a length that the file claims. All captures of a file share one
//! budget (`budget.rs`), which grows with the file's size.

mod budget;
mod kinds;
mod read;
mod rows;
mod stream;
mod times;
mod waits;
mod write;

use std::io;

use thiserror::Error;

pub use read::{Partial, read, read_all, read_records, read_what_is_whole};
pub use stream::{KeySamples, LanePart, LaneSample, Stream};
pub use write::{write, write_records};

/// First bytes of a capture. The first byte is not valid text. Programs that convert line ends
/// change the last byte.
pub const MAGIC: [u8; 7] = *b"\x89scope\n";
/// Version that the writer writes. The reader accepts no later version.
pub const VERSION: u8 = 2;

/// Maximum bytes of one record. Writers split longer records.
const LONGEST_RECORD: usize = 1 << 22;
/// Maximum fields of one record. Writers put [`ROWS`] rows into one.
const MAX_FIELDS: usize = 4 * ROWS;
/// Rows that a writer puts into a record.
const ROWS: usize = 4096;
/// Maximum captures in one file; wallclock writes two.
const MAX_CAPTURES: usize = 64;
/// Maximum frames of a stack. Recorders write up to 1024 native frames and 1024 frames of a
/// language. The limit is eight times that number, because the compiler can inline several
/// functions at one frame.
pub const MAX_DEPTH: usize = 1 << 14;

#[rustfmt::skip]
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::restriction)]
#[path = "messages.rs"]
mod proto;

/// Reason why a capture cannot be read.
#[derive(Debug, Error)]
pub enum Error {
    /// A read from the file fails.
    #[error("cannot read the capture: {0}")]
    Read(#[source] io::Error),
    /// The file does not begin with the magic.
    #[error("this is no capture of systemscope")]
    NotACapture,
    /// A later version of the suite wrote the file.
    #[error(
        "the capture is of version {0}, and this program reads up to {VERSION}: use a later one"
    )]
    LaterVersion(u8),
    /// The file ends before the record `End`.
    #[error("the capture is cut off: was it copied whole, or is it still being written?")]
    CutOff,
    /// The content of the file is invalid.
    #[error("the capture is damaged: {0}")]
    Damaged(&'static str),
}

#[cfg(test)]
mod tests;
