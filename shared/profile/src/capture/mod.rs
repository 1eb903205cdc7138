//! Capture files (`*.scope`): a profile as it is, for later and for elsewhere.
//!
//! A file is [`MAGIC`], a byte that is the version, and a zstd stream of the messages
//! that `capture.proto` describes. Files may be put one behind the other: one holds then
//! what several did. A file comes from anywhere: whatever is in it is checked when it is
//! read, and a reader's memory follows what it has read, never what the file claims. All
//! parts of a file share one budget (`budget.rs`), which follows the file's size.

mod budget;
mod kinds;
mod read;
mod rows;
mod times;
mod waits;
mod write;

use std::io;

use thiserror::Error;

pub use read::{Partial, read, read_all, read_what_is_whole};
pub use write::write;

/// What a capture begins with. The first byte is no text; the last is changed by what
/// takes files for text.
pub const MAGIC: [u8; 7] = *b"\x89scope\n";
/// The version that is written, and the latest that is read.
pub const VERSION: u8 = 2;

/// Maximum bytes of one record. Writers split what is longer.
const LONGEST_RECORD: usize = 1 << 22;
/// Maximum fields of one record. Writers put [`ROWS`] rows into one.
const MOST_FIELDS: usize = 4 * ROWS;
/// Rows that a writer puts into a record.
const ROWS: usize = 4096;
/// Maximum captures in one file; wallclock writes two.
const MOST_CAPTURES: usize = 64;
/// Maximum frames of a stack. Recorders write up to 1024 native frames and 1024 of a language;
/// this leaves eight for each with the functions that are inlined there.
pub const MOST_DEPTH: usize = 1 << 14;

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
