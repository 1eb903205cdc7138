//! The list of all formats of whole profiles, and finding a format by its name or a file's ending.

use export::Format;
use export::capture::Capture;
use export::chrome::Chrome;
use export::classic::Classic;
use export::firefox::{Firefox, PackedFirefox};
use export::folded::Folded;
use export::json::Json;
use export::perf_script::PerfScript;
use export::perfetto::Perfetto;
use export::pprof::Pprof;
use export::speedscope::Speedscope;
use export::svg::Svg;
use export::waits::Waits;
use page::Html;

/// All formats of whole profiles.
pub const FORMATS: &[&dyn Format] = &[
    &Folded,
    &Html,
    &Svg,
    &Pprof,
    &Speedscope,
    &Chrome,
    &Firefox,
    &PackedFirefox,
    &PerfScript,
    &Perfetto,
    &Json,
    &Waits,
    &Capture,
    &Classic,
];

/// Returns the names of all formats, separated by commas.
#[must_use]
pub fn names() -> String {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name()).collect();
    names.join(", ")
}

/// Returns the first ending of each format that has one, separated by commas.
#[must_use]
pub fn endings() -> String {
    let endings = FORMATS.iter().filter_map(|format| format.endings().first());
    let endings: Vec<&str> = endings.copied().collect();
    endings.join(", ")
}

/// Returns the format with a name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Format> {
    let mut formats = FORMATS.iter().copied();
    formats.find(|format| format.name() == name)
}

/// Returns the format whose ending a file's name has; the longest ending wins.
#[must_use]
pub fn by_ending(file: &str) -> Option<&'static dyn Format> {
    ending(file).map(|(format, _)| format)
}

/// Returns a file's name without a format's ending.
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

// The profiles that the tests of formats use.
#[cfg(test)]
#[allow(dead_code)]
#[path = "../../export/src/fixture.rs"]
mod fixture;
#[cfg(test)]
#[allow(dead_code)]
#[path = "../../export/src/timeline_fixture.rs"]
mod timeline_fixture;

#[cfg(test)]
mod tests {
    use super::*;

    use export::Options;

    use crate::fixture::blocked;
    use crate::timeline_fixture::{hostile_timeline, timeline};

    #[test]
    fn a_format_is_found_by_its_name_and_its_ending() {
        for format in FORMATS {
            let found = by_name(format.name()).map(Format::name);
            assert_eq!(found, Some(format.name()));
        }
        assert!(by_name("").is_none() && by_name("Folded").is_none());
        let name_of = |file| by_ending(file).map(Format::name);
        assert_eq!(name_of("a.json"), Some("json"));
        assert_eq!(name_of("a.speedscope.json"), Some("speedscope"));
        assert_eq!(name_of("dir/run.pb.gz"), Some("pprof"));
        assert_eq!([name_of("a"), name_of("a.txt"), name_of(".svg")], [None; 3]);
        assert_eq!(without_ending("a.speedscope.json"), "a");
        assert_eq!(without_ending("dir/run.pb.gz"), "dir/run");
        assert_eq!(without_ending("run.2"), "run.2");
    }

    /// Returns the rows of the table of formats in Markdown.
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
        for profile in [blocked(), timeline(), hostile_timeline()] {
            for format in FORMATS {
                let mut bytes = Vec::new();
                let written = format.write(&profile, &Options::default(), &mut bytes);
                assert!(written.is_ok() && !bytes.is_empty(), "{}", format.name());
                // A buffer of half the size fails as a full disk does.
                let half = bytes.len() / 2;
                let mut room = &mut bytes[..half];
                let written = format.write(&profile, &Options::default(), &mut room);
                assert!(written.is_err(), "{}", format.name());
            }
        }
    }
}
