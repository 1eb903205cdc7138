//! Changes as a differential flame graph: as wide as it is after, red where there is more
//! than before, blue where there is less.

use std::collections::BTreeMap;
use std::io::{self, Write};

use inferno::flamegraph::color::BackgroundColor;
use inferno::flamegraph::{self, TextTruncateDirection};
use profile::Profile;

use crate::measure::Measure;
use crate::svg::{Caption, PAPER, not_a_comment, write_empty};
use crate::text::lines::Lines;
use crate::text::options::Options;

/// Writes the flame graph.
///
/// # Errors
/// Those of the writer.
pub fn write(before: &Profile, after: &Profile, writer: &mut dyn Write) -> io::Result<()> {
    let mut lines: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    let measure = Measure::of(after);
    let (divisor, count_name) = match &measure {
        Measure::Time(_) => (1_000, "µs"),
        Measure::Events(name, _) => (1, name.as_str()),
    };
    let length = |profile: &Profile| profile.meta.window.length_ns.max(1) as f64;
    let options = Options::default();
    for (side, profile) in [before, after].into_iter().enumerate() {
        let measure = Measure::of(profile);
        // As if both windows had been as long as the later one.
        let scale = length(after) / length(profile);
        let values = profile.values();
        let samples = values.map(|(sample, value)| (sample, measure.of_value(value)));
        Lines::new(profile, samples, &options).for_each(|line, value| {
            let value = (value as f64 * scale) as u64 / divisor;
            lines.entry(not_a_comment(line).into_owned()).or_default()[side] += value;
            Ok::<_, io::Error>(())
        })?;
    }
    let lines = lines.into_iter();
    let lines = lines.map(|(line, [before, after])| format!("{line} {before} {after}"));
    let lines: Vec<String> = lines.collect();
    let is_empty = lines.iter().all(|line| line.ends_with(" 0"));
    if is_empty {
        return write_empty(&Caption::titled("What changed"), writer);
    }
    let mut options = flamegraph::Options::default();
    options.title = "What changed".to_owned();
    options.subtitle = Some("widths: after; red: more than before, blue: less".to_owned());
    options.count_name = count_name.to_owned();
    options.bgcolors = Some(BackgroundColor::Flat(PAPER));
    options.deterministic = true;
    options.text_truncate_direction = TextTruncateDirection::Right;
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), writer)
}
