//! Differences between two profiles, as a table, as JSON and as a flame graph.

mod json;
mod svg;
mod table;

pub use json::write as write_json;
pub use svg::write as write_svg;
pub use table::{Shown, write as write_table};

use profile::{Profile, State, Unit};

use crate::measure::{Measure, state_name};

/// Returns the name of a state. Without a state, returns the name of the quantity that the profile
/// measures.
fn state_label(profile: &Profile, state: Option<State>) -> &'static str {
    match (state, profile.unit) {
        (Some(state), _) => state_name(state),
        (None, Unit::Samples) => "on CPU",
        (None, Unit::Nanoseconds) => "off CPU",
    }
}

/// Returns the name of the profile's events; `None` if its values are times.
fn unit_name(profile: &Profile) -> Option<String> {
    match Measure::new(profile) {
        Measure::Time(_) => None,
        Measure::Events(name, _) => Some(name),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use profile::diff::{Diff, diff};
    use profile::{Rate, Sampling, folded};

    use super::*;
    use crate::fixture::written;

    /// Reads a profile in which one sample is a millisecond.
    fn profile(text: &str, seconds: u64) -> Profile {
        let mut profile = folded::read(text.as_bytes(), Unit::Samples, false).unwrap();
        profile.meta.window.length_ns = seconds * 1_000_000_000;
        profile.meta.sampling = Some(Sampling {
            event: "cpu-clock".into(),
            rate: Rate::Frequency(1000),
        });
        profile
    }

    fn profiles() -> [Profile; 2] {
        [
            "a;main;f 900\na;main;g 5000\n",
            "a;main;f 1300\na;main;g 5010\nb;h 7\n",
        ]
        .map(|text| profile(text, 10))
    }

    fn changes() -> Diff {
        let [before, after] = profiles();
        diff(&before, &after).unwrap()
    }

    #[test]
    fn the_table_tells_chance_from_change() {
        let [before, after] = profiles();
        let table = |shown, rows| {
            written(|writer| write_table(&before, &after, &changes(), shown, rows, writer))
        };
        let functions = table(Shown::Functions, 20);
        let line = |name: &str| {
            let mut lines = functions.lines();
            let line = lines
                .find(|line| line.ends_with(&format!(" {name}")))
                .unwrap();
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            line("f"),
            [
                "+40.000", "±", "12.1", "90.000", "130.000", "on", "CPU", "f"
            ]
        );
        assert!(line("g").contains(&"~".to_owned()), "{functions}");
        assert!(table(Shown::Functions, 1).contains("3 more"), "{functions}");
        assert!(!table(Shown::Functions, 4).contains(" more"), "{functions}");
        assert!(table(Shown::Stacks, 20).contains("a;main;f"));
    }

    #[test]
    fn the_object_has_every_change() {
        let [before, after] = profiles();
        let text = written(|writer| write_json(&before, &after, &changes(), writer));
        let object: serde_json::Value = serde_json::from_str(&text).unwrap();
        let functions = object["functions"].as_array().unwrap();
        assert_eq!(functions.len(), 4);
        assert!(functions.iter().all(|it| it.get("stack").is_none()));
        let f = functions.iter().find(|it| it["function"] == "f").unwrap();
        assert_eq!(f["before"], 90e6);
        assert_eq!(f["difference"], 40e6);
        assert_eq!(f["significant"], true);
        assert_eq!(object["stacks"].as_array().unwrap().len(), 3);
        assert_eq!(object["unit"], "nanoseconds per second");
    }

    #[test]
    fn the_picture_is_as_wide_as_it_is_after() {
        let [before, after] = profiles();
        let svg = written(|writer| write_svg(&before, &after, writer));
        assert!(svg.contains("<title>all (6,317,000 µs"), "{svg:.2000}");
        assert!(
            svg.contains("<title>f (1,300,000 µs, 20.58%; +6.3"),
            "{svg}"
        );
    }

    #[test]
    fn half_as_much_in_half_the_time_is_no_change() {
        let [before, after] = [profile("a;f 450\n", 5), profile("a;f 900\n", 10)];
        let svg = written(|writer| write_svg(&before, &after, writer));
        assert!(
            svg.contains("<title>f (900,000 µs, 100.00%; 0.00%)</title>"),
            "{svg}"
        );
    }
}
