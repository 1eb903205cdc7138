//! `/proc/PID/maps`: the executable mappings of a process.
//!
//! The format is in proc_pid_maps(5).

use std::io::{Read, Result};

use crate::lines::{for_each_line, hexadecimal};

/// More mappings than `vm.max_map_count` usually allows in all.
const MOST_ENTRIES: usize = 1 << 17;
/// A path of PATH_MAX bytes with every byte escaped, and the fields before it.
const LONGEST_LINE: usize = 17 << 10;
/// Reading stops here, however many mappings the process has made.
const MOST_BYTES: u64 = 256 << 20;

/// One executable mapping.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// First address.
    pub(crate) start: u64,
    /// First address after it.
    pub(crate) end: u64,
    /// Offset in the file of the first address, in bytes.
    pub(crate) offset: u64,
    /// Device of the file, as in `st_dev`; 0 if there is no file.
    pub(crate) device: u64,
    /// Inode of the file; 0 if there is no file.
    pub(crate) inode: u64,
    /// Path of the file as the process's mount namespace has it, a name in
    /// brackets, or nothing.
    pub(crate) path: Vec<u8>,
}

/// Reads the executable mappings in ascending order.
///
/// `None` when there are no mappings at all, as of a process that is exiting.
pub(crate) fn executable(reader: impl Read) -> Result<Option<Vec<Entry>>> {
    let mut entries = Vec::new();
    let mut empty = true;
    for_each_line(reader, LONGEST_LINE, MOST_BYTES, |line| {
        empty = false;
        if entries.len() < MOST_ENTRIES {
            entries.extend(parse(line));
        }
    })?;
    // The kernel writes them in order, but a page at a time: what is unmapped
    // and mapped meanwhile may come twice.
    entries.sort_by_key(|entry| entry.start);
    entries.dedup_by_key(|entry| entry.start);
    Ok((!empty).then_some(entries))
}

/// Reads one line; `None` if it is not an executable mapping.
fn parse(line: &[u8]) -> Option<Entry> {
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let (start, end) = split(fields.next()?, b'-')?;
    if fields.next()?.get(2) != Some(&b'x') {
        return None;
    }
    let offset = hexadecimal(fields.next()?)?;
    let (major, minor) = split(fields.next()?, b':')?;
    let inode = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let path = fields.next().unwrap_or_default().trim_ascii_start();
    (start < end).then(|| Entry {
        start,
        end,
        offset,
        device: rustix::fs::makedev(major as u32, minor as u32),
        inode,
        path: unescape(path),
    })
}

/// Reads two hexadecimal numbers with a separator between them.
fn split(text: &[u8], separator: u8) -> Option<(u64, u64)> {
    let at = text.iter().position(|&byte| byte == separator)?;
    Some((hexadecimal(&text[..at])?, hexadecimal(&text[at + 1..])?))
}

/// Undoes the only escape that the kernel writes here: `\012` for a newline.
fn unescape(path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [first, tail @ ..] = rest {
        if let Some(after) = rest.strip_prefix(b"\\012") {
            plain.push(b'\n');
            rest = after;
        } else {
            plain.push(*first);
            rest = tail;
        }
    }
    plain
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn executable_mappings_are_read_whole() {
        let text = b"\
55914ab47000-55914ab4c000 r-xp 00002000 fe:00 247030                     /usr/bin/cat\n\
7fe608552000-7fe608578000 r--p 00000000 fe:00 326279                     /usr/lib/libc.so.6\n\
7fe608700000-7fe608701000 rwxp 00000000 00:00 0 \n\
7fe608745000-7fe608747000 r-xp 00000000 00:00 0                          [vdso]\n\
7fe608800000-7fe608801000 r-xs 00000000 00:01 1030                       /a b\\012c (deleted)\n";
        let entries = executable(&text[..]).unwrap().unwrap();
        assert_eq!(entries.len(), 4);
        assert_eq!(
            entries[0],
            Entry {
                start: 0x55914ab47000,
                end: 0x55914ab4c000,
                offset: 0x2000,
                device: rustix::fs::makedev(0xfe, 0),
                inode: 247030,
                path: b"/usr/bin/cat".to_vec(),
            }
        );
        assert_eq!(entries[1].path, b"");
        assert_eq!(entries[2].path, b"[vdso]");
        assert_eq!(entries[3].path, b"/a b\nc (deleted)");
    }

    #[test]
    fn garbage_is_no_mapping_and_nothing_is_told_from_no_mappings() {
        for garbage in [
            "",
            "x",
            "1-2",
            "2-1 r-xp 0 0:0 0",
            "1-1 r-xp 0 0:0 0",
            "zz-1 r-xp 0 0:0 0",
            "1-2 r-xp 0 0:0 -5 p",
        ] {
            assert_eq!(
                executable(format!("{garbage}\n").as_bytes()).unwrap(),
                Some(vec![])
            );
        }
        assert_eq!(executable(&b""[..]).unwrap(), None);
    }

    #[test]
    fn mappings_are_bounded() {
        let line = |at: usize| format!("{at:x}-{:x} r-xp 0 0:0 0\n", at + 1);
        let text: String = (0..MOST_ENTRIES + 2).map(line).collect();
        let entries = executable(text.as_bytes()).unwrap().unwrap();
        assert_eq!(entries.len(), MOST_ENTRIES);
    }
}
