//! Build IDs, as servers and the cache write them.

use std::fmt;
use std::fs::File;

use elf::Elf;

/// Minimum and maximum size of a build ID, in bytes. Linkers make 8 to 20.
const SIZES: std::ops::RangeInclusive<usize> = 4..=64;

/// Build ID of a file. Its text consists of hexadecimal digits only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BuildId(Box<[u8]>);

impl BuildId {
    /// Returns the build ID of these bytes; `None` if no linker makes one of this size.
    pub(crate) fn new(bytes: &[u8]) -> Option<BuildId> {
        SIZES.contains(&bytes.len()).then(|| BuildId(bytes.into()))
    }

    /// Returns whether `file` is an ELF file with this build ID.
    pub(crate) fn is_of(&self, file: &File) -> bool {
        let elf = Elf::read(file).ok();
        elf.and_then(|elf| elf.build_id()).as_deref() == Some(&*self.0)
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn build_ids_are_hexadecimal_and_of_a_plausible_size() {
        let text = |bytes: &[u8]| BuildId::new(bytes).map(|id| id.to_string());
        assert_eq!(text(&[0, 0xab, 1, 2]).as_deref(), Some("00ab0102"));
        for size in [0, 3, 65] {
            assert_eq!(text(&vec![1; size]), None, "{size}");
        }
    }
}
