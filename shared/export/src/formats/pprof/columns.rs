//! Columns of sample values: pprof's sample types.

use profile::{Profile, Sample, State, Unit, Weight};

use crate::measure::Measure;

/// A column with one value per sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) unit: &'static str,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    /// Number of samples or intervals.
    Events,
    /// Time or events in one state.
    State(State),
    /// Time or events in all states.
    All,
}

/// Returns the columns of a profile. The count comes first, because pprof divides by the first
/// column to compute means. The default column comes last.
pub(super) fn columns(profile: &Profile, measure: &Measure) -> Vec<Column> {
    let column = |name: &str, unit, counts| Column {
        name: name.to_owned(),
        unit,
        counts,
    };
    let time = |name, counts| column(name, "nanoseconds", counts);
    let mut columns = vec![column("samples", "count", Counts::Events)];
    let states = [
        ("cpu", State::Running),
        ("runnable", State::Runnable),
        ("blocked", State::Blocked),
    ];
    let seen = |state| {
        let mut samples = profile.samples.keys();
        samples.any(|sample: &Sample| sample.state == Some(state))
    };
    for (name, state) in states {
        if seen(state) {
            columns.push(time(name, Counts::State(state)));
        }
    }
    match (columns.len(), measure) {
        // A single state covers all values.
        (2, _) => columns[1].counts = Counts::All,
        (3.., _) => columns.push(time("wall", Counts::All)),
        (_, Measure::Time(_)) => columns.push(time(only_name(profile), Counts::All)),
        (_, Measure::Events(name, _)) if *name != columns[0].name => {
            columns.push(column(name, "count", Counts::All));
        }
        _ => {}
    }
    columns
}

/// Returns the name of the time column of a profile that does not distinguish states.
fn only_name(profile: &Profile) -> &'static str {
    let has_wakers = || profile.samples.keys().any(|sample| sample.wakers.is_some());
    match profile.unit {
        Unit::Samples => "cpu",
        Unit::Nanoseconds if has_wakers() => "blocked",
        Unit::Nanoseconds => "off_cpu",
    }
}

impl Column {
    /// Returns a sample's value in this column.
    pub(super) fn value(&self, sample: &Sample, weight: &Weight, measure: &Measure) -> u64 {
        match self.counts {
            Counts::Events => weight.events,
            Counts::State(state) if sample.state != Some(state) => 0,
            Counts::State(_) | Counts::All => measure.convert(weight.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{blocked, sample, weight, woken};

    fn names(profile: &Profile) -> Vec<String> {
        let columns = columns(profile, &Measure::new(profile)).into_iter();
        let names = columns.map(|column| format!("{}/{}", column.name, column.unit));
        names.collect()
    }

    #[test]
    fn there_is_one_for_each_state_and_one_for_all() {
        assert_eq!(names(&blocked()), ["samples/count", "off_cpu/nanoseconds"]);
        assert_eq!(names(&woken()), ["samples/count", "blocked/nanoseconds"]);
        let mut profile = Profile::new(Unit::Nanoseconds);
        for state in [State::Running, State::Blocked] {
            let sample = sample(&mut profile, "t", &["f"], &[], Some(state));
            profile.add(sample, weight(1));
        }
        let expected = ["samples/count", "cpu/nanoseconds", "blocked/nanoseconds"];
        let mut expected = expected.to_vec();
        expected.push("wall/nanoseconds");
        assert_eq!(names(&profile), expected);
    }
}
