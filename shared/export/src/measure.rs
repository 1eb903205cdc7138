//! Unit of a profile's values, for formats that name units.

use profile::{Profile, Rate, Sample, State, Unit};

/// Unit of the sample values, with the factor that converts values to the unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Time: each value stands for this many nanoseconds.
    Time(u64),
    /// Events, by perf's name: each value stands for this many events.
    Events(String, u64),
}

impl Measure {
    pub(crate) fn new(profile: &Profile) -> Measure {
        let sampling = match (profile.unit, &profile.meta.sampling) {
            (Unit::Nanoseconds, _) => return Measure::Time(1),
            (Unit::Samples, None) => return Measure::Events("samples".to_owned(), 1),
            (Unit::Samples, Some(sampling)) => sampling,
        };
        let each = sampling.each();
        match (sampling.nanoseconds(), sampling.rate) {
            (Some(_), _) => Measure::Time(each),
            (None, Rate::Period(_)) => Measure::Events(sampling.event.to_string(), each),
            (None, Rate::Frequency(_)) => Measure::Events("samples".to_owned(), each),
        }
    }

    /// Returns the divisor of displayed values, and the name of their unit.
    pub(crate) fn display_unit(&self) -> (u64, &str) {
        match self {
            Measure::Time(_) => (1_000, "µs"),
            Measure::Events(name, _) => (1, name),
        }
    }

    /// Iterates over the samples of a profile with their values in nanoseconds or events.
    pub(crate) fn values(&self, profile: &Profile) -> impl Iterator<Item = (Sample, u64)> {
        let values = profile.values();
        values.map(|(sample, value)| (sample, self.convert(value)))
    }

    /// Converts a value to nanoseconds or events.
    pub(crate) fn convert(&self, value: u64) -> u64 {
        match self {
            Measure::Time(each) | Measure::Events(_, each) => value.saturating_mul(*each),
        }
    }
}

/// Returns the state that samples without a state have: CPU samples are all running.
pub(crate) fn implied_state(profile: &Profile) -> Option<State> {
    (profile.unit == Unit::Samples).then_some(State::Running)
}

/// Returns a state as a word.
pub(crate) fn state_name(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::Runnable => "runnable",
        State::Blocked => "blocked",
    }
}

#[cfg(test)]
mod tests {
    use profile::Sampling;

    use super::*;

    #[test]
    fn samples_of_clocks_are_time() {
        let measure = |event: &str, rate| {
            let mut profile = Profile::new(Unit::Samples);
            let event = event.into();
            profile.meta.sampling = Some(Sampling { event, rate });
            Measure::new(&profile)
        };
        let events = |name: &str, each| Measure::Events(name.to_owned(), each);
        let at_49 = Rate::Frequency(49);
        assert_eq!(measure("cpu-clock", at_49), Measure::Time(20_408_163));
        assert_eq!(measure("cpu-cycles", at_49), Measure::Time(20_408_163));
        assert_eq!(measure("cache-misses", at_49), events("samples", 1));
        let every_1000 = Rate::Period(1000);
        assert_eq!(measure("cpu-clock", every_1000), Measure::Time(1000));
        assert_eq!(
            measure("cpu-cycles", every_1000),
            events("cpu-cycles", 1000)
        );
        assert_eq!(measure("cpu-cycles", every_1000).convert(3), 3000);
        let measure = |unit| Measure::new(&Profile::new(unit));
        assert_eq!(measure(Unit::Nanoseconds), Measure::Time(1));
        assert_eq!(measure(Unit::Samples), events("samples", 1));
    }
}
