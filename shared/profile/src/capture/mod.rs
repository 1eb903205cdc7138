//! Capture files (`*.scope`): a profile as it is, for later and for elsewhere.
//!
//! A file is [`MAGIC`], a byte that is the version, and a zstd stream of the messages
//! that `capture.proto` describes. Files may be put one behind the other: one holds then
//! what several did. A file comes from anywhere: whatever is in it is checked when it is
//! read, and a reader's memory follows what it has read, never what the file claims.

mod read;
mod rows;
mod write;

use std::io;

use thiserror::Error;

pub use read::{Partial, read, read_all, read_what_is_whole};
pub use write::write;

/// What a capture begins with. The first byte is no text; the last is changed by what
/// takes files for text.
pub const MAGIC: [u8; 7] = *b"\x89scope\n";
/// The version that is written, and the latest that is read.
pub const VERSION: u8 = 1;

/// The most bytes of one record; writers make them far shorter.
const LONGEST_RECORD: usize = 1 << 24;
/// The most bytes of all records.
const MOST_BYTES: u64 = 1 << 31;
/// The most captures in one file; wallclock puts two.
const MOST_CAPTURES: usize = 64;
/// The most rows of a kind.
const MOST_ROWS: usize = 1 << 24;

#[rustfmt::skip]
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::restriction)]
#[path = "messages.rs"]
mod proto;

/// Why a capture could not be read.
#[derive(Debug, Error)]
pub enum Error {
    /// The file could not be read at all.
    #[error("cannot read the capture: {0}")]
    Read(#[source] io::Error),
    /// It begins as no capture does.
    #[error("this is no capture of systemscope")]
    NotACapture,
    /// A later version of the suite wrote it.
    #[error(
        "the capture is of version {0}, and this program reads up to {VERSION}: use a later one"
    )]
    LaterVersion(u8),
    /// It ends before its end.
    #[error("the capture is cut off: was it copied whole, or is it still being written?")]
    CutOff,
    /// Something in it cannot be.
    #[error("the capture is damaged: {0}")]
    Damaged(&'static str),
}

#[cfg(test)]
mod tests;
