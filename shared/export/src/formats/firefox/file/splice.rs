//! Takes the threads out of a profile in JSON.

use std::io::{self, Write};

/// Key before the threads of a profile in JSON, and what follows them. Quotes in texts have a
/// backslash before them, so no text contains the key.
const KEY: &[u8] = b"\"threads\":[";
pub(super) const TAIL: &[u8] = b"],\"pages\":[],\"profilerOverhead\":[],\"counters\":[]}";

/// Passes on the threads of a profile in JSON, and what is before them if `writes_head`.
pub(super) struct ThreadsWriter<'a, W> {
    writer: &'a mut W,
    writes_head: bool,
    /// Bytes of [`KEY`] that the last bytes match.
    matched: usize,
    /// The last bytes of the threads, which may be [`TAIL`].
    held: Vec<u8>,
}

impl<'a, W: Write> ThreadsWriter<'a, W> {
    pub(super) fn new(writer: &'a mut W, writes_head: bool) -> ThreadsWriter<'a, W> {
        ThreadsWriter {
            writer,
            writes_head,
            matched: 0,
            held: Vec::new(),
        }
    }

    /// Writes the end of the threads.
    pub(super) fn finish(self) -> io::Result<()> {
        let threads = self.held.strip_suffix(TAIL);
        let threads = threads.ok_or_else(|| io::Error::other("the crate writes another form"))?;
        self.writer.write_all(threads)
    }
}

impl<W: Write> Write for ThreadsWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut head = 0;
        for byte in bytes {
            if self.matched == KEY.len() {
                break;
            }
            head += 1;
            self.matched = match *byte {
                byte if byte == KEY[self.matched] => self.matched + 1,
                b'"' => 1,
                _ => 0,
            };
        }
        if self.writes_head {
            self.writer.write_all(&bytes[..head])?;
        }
        self.held.extend_from_slice(&bytes[head..]);
        if self.held.len() > 64 << 10 {
            let ready = self.held.len() - TAIL.len();
            self.writer.write_all(&self.held[..ready])?;
            self.held.drain(..ready);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
