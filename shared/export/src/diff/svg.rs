//! Changes as a differential flame graph: widths show the later profile, red is an increase, blue a
//! decrease.

use std::collections::BTreeMap;
use std::io::{self, Write};

use inferno::flamegraph;
use profile::Profile;

use crate::measure::Measure;
use crate::svg::{Caption, common_options, not_a_comment, write_empty};
use crate::text::lines::Lines;
use crate::text::options::Options;

/// Writes the differential flame graph.
///
/// # Errors
/// Returns the errors of `writer`.
pub fn write(before: &Profile, after: &Profile, writer: &mut dyn Write) -> io::Result<()> {
    let mut lines: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    let measure = Measure::new(after);
    let (divisor, count_name) = measure.display_unit();
    let length = |profile: &Profile| profile.meta.window.length_ns.max(1) as f64;
    let options = Options::default();
    for (side, profile) in [before, after].into_iter().enumerate() {
        let measure = Measure::new(profile);
        // Values of the earlier profile are scaled to the length of the later window.
        let scale = length(after) / length(profile);
        Lines::new(profile, measure.values(profile), &options).for_each(|line, value| {
            let value = (value as f64 * scale) as u64 / divisor;
            let sum = &mut lines.entry(not_a_comment(line).into_owned()).or_default()[side];
            *sum = sum.saturating_add(value);
            Ok::<_, io::Error>(())
        })?;
    }
    let lines = lines.into_iter();
    let lines = lines.map(|(line, [before, after])| format!("{line} {before} {after}"));
    let lines: Vec<String> = lines.collect();
    let caption = Caption {
        title: "What changed".to_owned(),
        subtitle: "widths: after; red: more than before, blue: less".to_owned(),
    };
    if lines.iter().all(|line| line.ends_with(" 0")) {
        return write_empty(&caption, writer);
    }
    let mut options = common_options(&caption, count_name);
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), writer)
}
