//! Bounds on the unpacked size of a file, over all captures in it.
//!
//! Each bound grows with the bytes of the file that were read. Captures of busy machines, deep
//! interpreted stacks and short waits unpack to 3 times their size and take 10 times their size in
//! memory. With the stack of each sample written out, these captures take up to 1,000 times their
//! size.

use std::cell::Cell;
use std::io::{self, BufRead, Read};

use super::Error;

/// Maximum rows of all kinds.
const MAX_ROWS: u64 = 1 << 26;
/// Maximum sum of all values, events and times of threads. 20,000 threads reach a third of it in a
/// day. Sums over several files do not overflow.
const MAX_COUNTED: u64 = 1 << 62;

/// A bound that grows with a file.
#[derive(Clone, Copy)]
struct Bound {
    /// Bytes that any file may take.
    least: u64,
    /// Bytes beyond `least` for each byte of the file.
    each: u64,
    /// Error text if the bound is exceeded.
    error: &'static str,
}

/// Bytes of records.
const UNPACKED: Bound = Bound {
    least: 32 << 20,
    each: 64,
    error: "it unpacks to far more than its size allows",
};
/// Bytes of rows in memory.
const HELD: Bound = Bound {
    least: 32 << 20,
    each: 64,
    error: "it has far more rows than its size allows",
};
/// Bytes of the samples' stacks, each written out.
const WRITTEN: Bound = Bound {
    least: 256 << 20,
    each: 2048,
    error: "its stacks are far deeper than its size allows",
};

/// Amounts that all captures of a file have used of the bounds so far.
pub(super) struct Budget<'a> {
    /// Bytes of the file that were read.
    packed: &'a Cell<u64>,
    unpacked: u64,
    rows: u64,
    held: u64,
    written: u64,
    counted: u64,
}

impl Budget<'_> {
    pub(super) fn new(packed: &Cell<u64>) -> Budget<'_> {
        Budget {
            packed,
            unpacked: 0,
            rows: 0,
            held: 0,
            written: 0,
            counted: 0,
        }
    }

    /// Adds a record of `bytes` bytes.
    pub(super) fn take_unpacked(&mut self, bytes: u64) -> Result<(), Error> {
        self.unpacked = self.unpacked.saturating_add(bytes);
        self.check(UNPACKED, self.unpacked)
    }

    /// Adds `rows` rows of `Row`, which own `beside` bytes in other allocations.
    pub(super) fn take_rows<Row>(&mut self, rows: usize, beside: usize) -> Result<(), Error> {
        // A hash table finds each row by its content, and a vector maps its number in the file to
        // its ID.
        let each = size_of::<Row>() + 24;
        self.rows = self.rows.saturating_add(rows as u64);
        self.held = (self.held).saturating_add((rows * each + beside) as u64);
        if self.rows > MAX_ROWS {
            return Err(Error::Damaged("it has too many rows"));
        }
        self.check(HELD, self.held)
    }

    /// Adds a sample whose stacks have `bytes` bytes of text.
    pub(super) fn take_written(&mut self, bytes: u64) -> Result<(), Error> {
        self.written = self.written.saturating_add(bytes);
        self.check(WRITTEN, self.written)
    }

    /// Adds numbers that readers sum up.
    pub(super) fn take_counts<const N: usize>(&mut self, counts: [u64; N]) -> Result<(), Error> {
        self.counted = counts.into_iter().fold(self.counted, u64::saturating_add);
        if self.counted > MAX_COUNTED {
            Err(Error::Damaged(
                "its times add up to more than threads can live",
            ))
        } else {
            Ok(())
        }
    }

    fn check(&self, bound: Bound, taken: u64) -> Result<(), Error> {
        let most = bound.each.saturating_mul(self.packed.get());
        if taken > most.saturating_add(bound.least) {
            Err(Error::Damaged(bound.error))
        } else {
            Ok(())
        }
    }
}

/// A reader that counts the bytes taken from it.
pub(super) struct Counted<'a, R> {
    reader: R,
    taken: &'a Cell<u64>,
}

impl<'a, R> Counted<'a, R> {
    pub(super) fn new(reader: R, taken: &'a Cell<u64>) -> Counted<'a, R> {
        Counted { reader, taken }
    }
}

impl<R: BufRead> Read for Counted<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(bytes)?;
        self.taken.set(self.taken.get() + read as u64);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.taken.set(self.taken.get() + bytes as u64);
        self.reader.consume(bytes);
    }
}
