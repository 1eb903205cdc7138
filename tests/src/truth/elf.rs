//! Reader for ELF sections, so that a test can damage one.

use std::ops::Range;

/// Returns the range of a section's bytes in a 64-bit little-endian ELF file.
///
/// # Panics
///
/// Panics if there is no such section.
pub fn section(file: &[u8], name: &str) -> Range<usize> {
    let number = |at: usize, bytes: usize| {
        let bytes = file[at..at + bytes].iter().rev();
        bytes.fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    // These are e_shoff, e_shentsize, e_shnum and e_shstrndx.
    let (headers, size, count, names) = (
        number(0x28, 8),
        number(0x3a, 2),
        number(0x3c, 2),
        number(0x3e, 2),
    );
    let header = |index: usize| headers + index * size;
    let contents = |index: usize| {
        let start = number(header(index) + 0x18, 8);
        start..start + number(header(index) + 0x20, 8)
    };
    let name_of = |index: usize| {
        let start = contents(names).start + number(header(index), 4);
        file[start..].split(|byte| *byte == 0).next()
    };
    let found = (0..count).find(|&index| name_of(index) == Some(name.as_bytes()));
    contents(found.unwrap_or_else(|| panic!("no section {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_found() {
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let comment = &file[section(&file, ".comment")];
        assert!(comment.windows(5).any(|part| part == b"rustc"));
    }
}
