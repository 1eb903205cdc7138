//! Parses `/proc/PID/maps`, in the format of proc_pid_maps(5). Keeps the executable mappings of a
//! process, and the mappings of files around code without a file.

use std::io::{Read, Result};

use crate::lines::{for_each_line, hexadecimal};

/// Maximum number of executable mappings. It is larger than the usual `vm.max_map_count`.
const MAX_ENTRIES: usize = 1 << 17;
/// Maximum length of a line, in bytes. It suffices for the fields, and for a path of PATH_MAX bytes
/// in which every byte is escaped.
const LONGEST_LINE: usize = 17 << 10;
/// Maximum number of bytes that are read, however many mappings the process makes.
const MAX_BYTES: u64 = 256 << 20;

/// Executable mappings of a process, and mappings of files around them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Maps {
    /// Executable mappings in ascending order.
    pub(crate) code: Vec<Entry>,
    /// Mappings of files around code without a file, executable or not, in ascending order. They
    /// are the last mapping before such code, and the first one after it.
    pub(crate) around: Vec<Entry>,
    /// `true` if the process has more executable mappings.
    pub(crate) are_cut: bool,
}

/// Mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// First address.
    pub(crate) start: u64,
    /// Address after the last one.
    pub(crate) end: u64,
    /// Offset in the file at the first address, in bytes.
    pub(crate) offset: u64,
    /// Device of the file, in the format of `st_dev`; 0 if there is no file.
    pub(crate) device: u64,
    /// Inode of the file; 0 if there is no file.
    pub(crate) inode: u64,
    /// Path of the file in the process's mount namespace, or a name in brackets, or nothing.
    pub(crate) path: Vec<u8>,
}

/// Reads the executable mappings.
///
/// Returns `None` if there are no mappings, as in a process that is exiting.
pub(crate) fn executable(reader: impl Read) -> Result<Option<Maps>> {
    let mut maps = Maps::default();
    let mut empty = true;
    // Line of the last mapping of a file, and whether the next mapping of a file follows code
    // without a file.
    let mut last_file = Vec::new();
    let mut is_next_wanted = false;
    let mut reader = reader.take(MAX_BYTES);
    for_each_line(&mut reader, LONGEST_LINE, MAX_BYTES, |line| {
        empty = false;
        let entry = parse(line, true);
        if maps.code.len() >= MAX_ENTRIES {
            maps.are_cut |= entry.is_some();
            return;
        }
        if line.contains(&b'/') && !entry.as_ref().is_some_and(Entry::is_memory) {
            if is_next_wanted {
                maps.around.extend(parse(line, false));
            }
            is_next_wanted = false;
            last_file.clear();
            last_file.extend_from_slice(line);
        } else if entry.as_ref().is_some_and(Entry::is_memory) && !is_next_wanted {
            maps.around.extend(parse(&last_file, false));
            is_next_wanted = true;
        }
        maps.code.extend(entry);
    })?;
    maps.are_cut |= reader.limit() == 0;
    // The kernel writes mappings in order, but one page of text at a time. Mappings that change
    // meanwhile may appear twice.
    for entries in [&mut maps.code, &mut maps.around] {
        entries.sort_by_key(|entry| entry.start);
        entries.dedup_by_key(|entry| entry.start);
    }
    Ok((!empty).then_some(maps))
}

/// Finds the address at which the first byte of a mapping's file is mapped. If there are several
/// such addresses, returns the highest one that is not above the mapping.
pub(crate) fn header(reader: impl Read, entry: &Entry) -> Result<Option<u64>> {
    let mut found = None;
    for_each_line(reader, LONGEST_LINE, MAX_BYTES, |line| {
        let other = parse(line, false);
        let is_header = |other: &Entry| {
            other.offset == 0 && other.start <= entry.start && other.has_file_of(entry)
        };
        found = other.filter(is_header).map(|other| other.start).or(found);
    })?;
    Ok(found)
}

impl Entry {
    /// Returns whether this is a mapping of memory, with or without a name, and not of a file.
    pub(crate) fn is_memory(&self) -> bool {
        let memory = [&b"[anon"[..], b"/memfd:", b"/anon_hugepage"];
        self.path.is_empty() || memory.iter().any(|prefix| self.path.starts_with(prefix))
    }

    /// Returns whether both mappings are of the same file.
    pub(crate) fn has_file_of(&self, other: &Entry) -> bool {
        let file = |entry: &Entry| (entry.device, entry.inode);
        file(self) == file(other) && self.path == other.path
    }
}

/// Parses one line. Returns `None` if the line is no mapping. If `is_code` is set, also returns
/// `None` for a mapping that is not executable.
fn parse(line: &[u8], is_code: bool) -> Option<Entry> {
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let (start, end) = split(fields.next()?, b'-')?;
    if fields.next()?.get(2) != Some(&b'x') && is_code {
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

/// Parses two hexadecimal numbers with a separator between them.
fn split(text: &[u8], separator: u8) -> Option<(u64, u64)> {
    let at = text.iter().position(|&byte| byte == separator)?;
    Some((hexadecimal(&text[..at])?, hexadecimal(&text[at + 1..])?))
}

/// Decodes `\012`, a newline. The kernel writes no other escape here.
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
        let Maps {
            code: entries,
            around,
            are_cut,
        } = executable(&text[..]).unwrap().unwrap();
        assert!(!are_cut);
        let around: Vec<_> = around.iter().map(|entry| entry.start).collect();
        assert_eq!(around, [0x7fe608552000, 0x7fe608800000]);
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
                Some(Maps::default())
            );
        }
        assert_eq!(executable(&b""[..]).unwrap(), None);
    }

    #[test]
    fn mappings_are_bounded() {
        let line = |at: usize| format!("{at:x}-{:x} r-xp 0 0:0 0\n", at + 1);
        for (count, are_cut) in [(MAX_ENTRIES, false), (MAX_ENTRIES + 1, true)] {
            let data = "0-1 rw-p 0 0:0 0\n".to_owned();
            let text: String = (0..count).map(line).chain([data]).collect();
            let maps = executable(text.as_bytes()).unwrap().unwrap();
            assert_eq!((maps.code.len(), maps.are_cut), (MAX_ENTRIES, are_cut));
        }
    }
}
