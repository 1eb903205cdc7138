//! Reads lines that other programs wrote, with bounds.

use std::io::{BufRead, BufReader, ErrorKind, Read, Result};

/// Calls `visit` with every line in the first `limit` bytes, without its newline. Cuts a line to
/// `longest` bytes. Leaves out a last line without a newline, because its writer may not have
/// finished it.
pub(crate) fn for_each_line(
    reader: impl Read,
    longest: usize,
    limit: u64,
    mut visit: impl FnMut(&[u8]),
) -> Result<()> {
    let mut reader = BufReader::with_capacity(64 << 10, reader.take(limit));
    let mut line = Vec::new();
    loop {
        let buffer = match reader.fill_buf() {
            Ok([]) => return Ok(()),
            Ok(buffer) => buffer,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let newline = buffer.iter().position(|&byte| byte == b'\n');
        let end = newline.unwrap_or(buffer.len());
        let room = longest.saturating_sub(line.len());
        line.extend_from_slice(&buffer[..end.min(room)]);
        let used = end + usize::from(newline.is_some());
        if newline.is_some() {
            visit(&line);
            line.clear();
        }
        reader.consume(used);
    }
}

/// Parses a text that consists of one hexadecimal number.
pub(crate) fn hexadecimal(text: &[u8]) -> Option<u64> {
    let text = text.strip_prefix(b"0x").unwrap_or(text);
    // `from_str_radix` would accept a sign.
    if !text.first()?.is_ascii_hexdigit() {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn lines(text: &[u8], longest: usize, limit: u64) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        for_each_line(text, longest, limit, |line| lines.push(line.to_vec())).unwrap();
        lines
    }

    #[test]
    fn long_lines_are_cut_and_the_next_is_whole() {
        let text = [vec![b'a'; 200_000], b"\nnext\n".to_vec()].concat();
        assert_eq!(
            lines(&text, 5, u64::MAX),
            [b"aaaaa".to_vec(), b"next".to_vec()]
        );
    }

    /// Reader that first returns these errors, last one first, and then the bytes.
    struct Failing(Vec<ErrorKind>, &'static [u8]);

    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            match self.0.pop() {
                Some(error) => Err(error.into()),
                None => self.1.read(buffer),
            }
        }
    }

    #[test]
    fn reading_goes_on_when_interrupted_and_ends_at_other_errors() {
        let read = |errors: &[ErrorKind]| {
            let mut count = 0;
            let reader = Failing(errors.to_vec(), b"one\ntwo\n");
            for_each_line(reader, 99, 99, |_| count += 1).map(|()| count)
        };
        assert_eq!(read(&[ErrorKind::Interrupted]).unwrap(), 2);
        let denied = read(&[ErrorKind::PermissionDenied, ErrorKind::Interrupted]);
        assert_eq!(denied.unwrap_err().kind(), ErrorKind::PermissionDenied);
    }

    #[test]
    fn reading_stops_at_the_limit() {
        assert_eq!(lines(b"one\ntwo\n", 99, 6), [b"one"]);
    }

    #[test]
    fn hexadecimal_takes_digits_only() {
        assert_eq!(hexadecimal(b"7fff00"), Some(0x7fff00));
        assert_eq!(hexadecimal(b"0xff"), Some(255));
        for bad in [&b""[..], b"+1", b"-1", b"0x", b"1 ", b"fffffffffffffffff"] {
            assert_eq!(hexadecimal(bad), None);
        }
    }
}
