//! Formats of profiles: what each must say of itself, and the list of all.

use std::io::{self, Write};
use std::ops::BitOr;

use profile::Profile;

use crate::capture::Capture;
use crate::classic::Classic;
use crate::folded::Folded;
use crate::json::Json;
use crate::perf_script::PerfScript;
use crate::pprof::Pprof;
use crate::speedscope::Speedscope;
use crate::svg::Svg;
use crate::waits::Waits;
use crate::{Options, Written};

/// What a format shows that costs something to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Frames of one function are told apart by their addresses.
    pub addresses: bool,
    /// Threads are told apart, and so are processes.
    pub threads: bool,
    /// Processes are.
    pub processes: bool,
    /// Threads have their accounts, those that ended too.
    pub accounts: bool,
    /// It is known why threads waited, and for what.
    pub reasons: bool,
    /// It is known who let go of what threads waited for.
    pub wakers: bool,
}

impl Needs {
    /// Nothing but names.
    pub const NAMES: Needs = Needs {
        addresses: false,
        threads: false,
        processes: false,
        accounts: false,
        reasons: false,
        wakers: false,
    };
    /// Everything.
    pub const ALL: Needs = Needs {
        addresses: true,
        threads: true,
        processes: true,
        accounts: true,
        reasons: true,
        wakers: true,
    };
}

impl BitOr for Needs {
    type Output = Needs;

    fn bitor(self, other: Needs) -> Needs {
        Needs {
            addresses: self.addresses || other.addresses,
            threads: self.threads || other.threads,
            processes: self.processes || other.processes,
            accounts: self.accounts || other.accounts,
            reasons: self.reasons || other.reasons,
            wakers: self.wakers || other.wakers,
        }
    }
}

/// A format that a whole profile can be written in, as one stream.
pub trait Format: Sync {
    /// What it is called; no two have the same name.
    fn name(&self) -> &'static str;

    /// What names of its files end in, the dot included; no two formats have the same.
    fn endings(&self) -> &'static [&'static str];

    /// Readers of the format, in Markdown.
    fn readers(&self) -> &'static str;

    /// What the profile must have for it.
    fn needs(&self) -> Needs;

    /// Whether it is not made for a terminal.
    fn is_binary(&self) -> bool {
        false
    }

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
pub const FORMATS: &[&dyn Format] = &[
    &Folded,
    &Svg,
    &Pprof,
    &Speedscope,
    &PerfScript,
    &Json,
    &Waits,
    &Capture,
    &Classic,
];

/// The names of all formats, for a sentence.
#[must_use]
pub fn names() -> String {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name()).collect();
    names.join(", ")
}

/// The first ending of each format that has one, for a sentence.
#[must_use]
pub fn endings() -> String {
    let endings = FORMATS.iter().filter_map(|format| format.endings().first());
    let endings: Vec<&str> = endings.copied().collect();
    endings.join(", ")
}

/// The format of a name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Format> {
    let mut formats = FORMATS.iter().copied();
    formats.find(|format| format.name() == name)
}

/// The format whose ending a file's name has; of several the one with the longest.
#[must_use]
pub fn by_ending(file: &str) -> Option<&'static dyn Format> {
    ending(file).map(|(format, _)| format)
}

/// A file's name without a format's ending.
#[must_use]
pub fn without_ending(file: &str) -> &str {
    match ending(file) {
        Some((_, ending)) => &file[..file.len() - ending.len()],
        None => file,
    }
}

fn ending(file: &str) -> Option<(&'static dyn Format, &'static str)> {
    let pairs = FORMATS.iter().flat_map(|format| {
        let endings = format.endings().iter();
        endings.map(move |ending| (*format, *ending))
    });
    pairs
        .filter(|(_, ending)| {
            let start = file
                .len()
                .checked_sub(ending.len())
                .filter(|start| *start > 0);
            let own = start.and_then(|start| file.get(start..));
            own.is_some_and(|own| own.eq_ignore_ascii_case(ending))
        })
        .max_by_key(|(_, ending)| ending.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::fixture::blocked;

    #[test]
    fn a_format_is_found_by_its_name_and_its_ending() {
        for format in FORMATS {
            let found = by_name(format.name()).map(Format::name);
            assert_eq!(found, Some(format.name()));
        }
        assert!(by_name("").is_none() && by_name("Folded").is_none());
        let of = |file| by_ending(file).map(Format::name);
        assert_eq!(of("a.json"), Some("json"));
        assert_eq!(of("a.speedscope.json"), Some("speedscope"));
        assert_eq!(of("dir/run.pb.gz"), Some("pprof"));
        assert_eq!([of("a"), of("a.txt"), of(".svg")], [None; 3]);
        assert_eq!(without_ending("a.speedscope.json"), "a");
        assert_eq!(without_ending("dir/run.pb.gz"), "dir/run");
        assert_eq!(without_ending("run.2"), "run.2");
    }

    /// Rows of the table of formats in Markdown.
    fn table() -> String {
        let row = |format: &&dyn Format| {
            let endings = format.endings().iter();
            let endings: Vec<String> = endings.map(|ending| format!("`{ending}`")).collect();
            let default = match format.name() {
                "folded" => ", or none",
                _ => "",
            };
            let endings = endings.join(", ");
            format!(
                "| `{}` | {endings}{default} | {} |\n",
                format.name(),
                format.readers()
            )
        };
        FORMATS.iter().map(row).collect()
    }

    #[test]
    fn the_guide_has_every_format() {
        let guide = include_str!("../../../docs/guide/formats.md");
        let table = table();
        assert!(
            guide.contains(&table),
            "docs/guide/formats.md must have:\n{table}"
        );
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
