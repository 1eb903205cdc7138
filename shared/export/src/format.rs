//! Formats of profiles: what each must say of itself, and the list of all.

use std::io::{self, Write};

use profile::Profile;

use crate::capture::Capture;
use crate::classic::Classic;
use crate::folded::Folded;
use crate::options::{Options, Written};

/// A format that a whole profile can be written in, as one stream.
pub trait Format: Sync {
    /// What it is called; no two have the same name.
    fn name(&self) -> &'static str;

    /// What names of its files end in, the dot included; no two formats have the same.
    fn endings(&self) -> &'static [&'static str];

    /// Whether it tells frames of one function apart by their addresses: then the profile
    /// must have them.
    fn tells_addresses(&self) -> bool;

    /// Writes a profile; what of `options` it has no place for is none of its business.
    ///
    /// # Errors
    /// Those of the writer.
    fn write(
        &self,
        profile: &Profile,
        options: &Options,
        writer: &mut dyn Write,
    ) -> io::Result<Written>;
}

/// All of them.
pub const FORMATS: &[&dyn Format] = &[&Folded, &Classic, &Capture];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::fixture::blocked;

    #[test]
    fn names_and_endings_are_ones_own() {
        let names: BTreeSet<_> = FORMATS.iter().map(|format| format.name()).collect();
        assert_eq!(names.len(), FORMATS.len());
        let endings = FORMATS.iter().flat_map(|format| format.endings());
        let distinct: BTreeSet<_> = endings.clone().collect();
        assert_eq!(distinct.len(), endings.clone().count());
        assert!(endings.clone().all(|ending| ending.starts_with('.')));
    }

    #[test]
    fn each_writes_and_tells_of_errors() {
        let profile = blocked();
        for format in FORMATS {
            let mut bytes = Vec::new();
            let written = format.write(&profile, &Options::default(), &mut bytes);
            assert!(written.is_ok() && !bytes.is_empty(), "{}", format.name());
            // Less room than that, as on a full disk.
            let half = bytes.len() / 2;
            let mut room = &mut bytes[..half];
            let written = format.write(&profile, &Options::default(), &mut room);
            assert!(written.is_err(), "{}", format.name());
        }
    }
}
