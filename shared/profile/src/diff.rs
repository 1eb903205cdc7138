//! Changes from one profile to another, and which of them may be chance.
//!
//! The variance of a total is the variance of a sum of intervals that occur at random
//! ([`Weight::variance`]), times the bursts of their state ([`Bursts`](crate::Bursts)). Regular
//! work, such as a loop, varies less. The estimate is then too large, and the test reports too few
//! changes.

use std::collections::HashMap;

use thiserror::Error;

use crate::{
    Name, Profile, Rate as SamplingRate, RowMap, Sampling, Stack, StackTree, State, Table, Text,
    Translation, Unit, Weight,
};

/// Number of standard deviations beyond which a change is significant at the level of 99 %
/// (two-sided, normal distribution).
pub const LEVEL: f64 = 2.576;

/// Amount per second of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Nanoseconds, or events, per second of the window.
    pub value: f64,
    /// Standard deviation of the value.
    pub deviation: f64,
}

/// A function or a stack, by the numbers of a [`Diff`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A function, by its name.
    Function(Name),
    /// The name of a thread, and its stack.
    Stack(Name, Stack),
}

/// Change of the time or events of a function or a stack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The function or the stack.
    pub subject: Subject,
    /// State of the thread, if the profiles distinguish states.
    pub state: Option<State>,
    /// Rate in the first profile.
    pub before: Rate,
    /// Rate in the second profile.
    pub after: Rate,
}

/// All changes. Significant changes come first, the largest first.
#[derive(Clone, Debug, Default)]
pub struct Diff {
    /// Changes of functions: the time during which they were on the stack.
    pub functions: Vec<Change>,
    /// Changes of stacks.
    pub stacks: Vec<Change>,
    /// Names of both profiles.
    names: Table<Text>,
    /// Stacks of both profiles. Frames of one name are one frame.
    tree: StackTree<Name>,
}

impl Diff {
    /// Returns the name of the function, or the names of the thread and of the frames, root
    /// first.
    #[must_use]
    pub fn names(&self, subject: Subject) -> Vec<&str> {
        let (first, stack) = match subject {
            Subject::Function(name) => (name, Stack::default()),
            Subject::Stack(comm, stack) => (comm, stack),
        };
        let parts = [stack.user, stack.kernel].map(|part| self.tree.root_first(part));
        let names = [first].into_iter().chain(parts.into_iter().flatten());
        names.map(|name| &*self.names[name]).collect()
    }
}

/// Reason why two profiles cannot be compared.
#[derive(Debug, Error)]
pub enum Error {
    /// The profiles measure different quantities.
    #[error("{0}, so they cannot be held against each other")]
    Different(String),
    /// One profile has no window.
    #[error("one of the captures does not say how long it measured")]
    NoWindow,
}

impl Change {
    /// Returns the rate after minus the rate before.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.after.value - self.before.value
    }

    /// Returns the standard deviation of the difference.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        self.before.deviation.hypot(self.after.deviation)
    }

    /// Returns whether the difference is significant at the level of 99 %.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.difference().abs() > LEVEL * self.deviation()
    }
}

/// Returns the changes from `before` to `after`.
///
/// # Errors
/// The profiles measure different quantities, or one of them has no window.
pub fn diff(before: &Profile, after: &Profile) -> Result<Diff, Error> {
    check(before, after)?;
    let mut diff = Diff::default();
    let mut functions = Sums::default();
    let mut stacks = Sums::default();
    for (side, profile) in [before, after].into_iter().enumerate() {
        let Diff { names, tree, .. } = &mut diff;
        let known: Vec<Name> = profile.names.iter().map(|name| names.text(name)).collect();
        let mut parts = Translation::default();
        let mut part = |part| {
            parts.stack(&profile.stacks, part, |callers, leaf| {
                tree.called(callers, known[profile.frames[leaf].name.index()])
            })
        };
        let samples = profile.samples.iter().map(|(sample, weight)| {
            let stack = Stack {
                user: part(sample.stack.user),
                kernel: part(sample.stack.kernel),
            };
            (known[sample.comm.index()], stack, sample.state, weight)
        });
        let samples: Vec<_> = samples.collect();
        let adder = Adder::new(profile);
        // Number of the last sample that has the function, counted from 1.
        let mut found = vec![0; names.len()];
        for (at, (comm, stack, state, weight)) in (1..).zip(samples) {
            let total = adder.total(state, weight);
            for part in [stack.user, stack.kernel] {
                for name in tree.leaf_first(part) {
                    if std::mem::replace(&mut found[name.index()], at) != at {
                        functions.add(Subject::Function(name), state, side, total);
                    }
                }
            }
            stacks.add(Subject::Stack(comm, stack), state, side, total);
        }
    }
    let seconds = [before, after].map(|profile| profile.meta.window.length_ns as f64 / 1e9);
    diff.functions = functions.changes(seconds);
    diff.stacks = stacks.changes(seconds);
    Ok(diff)
}

fn check(before: &Profile, after: &Profile) -> Result<(), Error> {
    let different = |what: String| Err(Error::Different(what));
    if before.meta.window.length_ns == 0 || after.meta.window.length_ns == 0 {
        return Err(Error::NoWindow);
    }
    if before.unit != after.unit {
        return different("one counts samples, the other time".to_owned());
    }
    let event = |profile: &Profile| {
        let sampling = profile.meta.sampling.as_ref();
        sampling.map_or("nothing".to_owned(), |sampling| sampling.event.to_string())
    };
    if event(before) != event(after) {
        let (one, other) = (event(before), event(after));
        return different(format!("one samples {one}, the other {other}"));
    }
    // A sample stands for time, for as many events as the period, or for an unknown number.
    let stands_for = |profile: &Profile| {
        profile
            .meta
            .sampling
            .as_ref()
            .map(|it| match (it.nanoseconds(), it.rate) {
                (Some(_), _) => (true, None),
                (None, SamplingRate::Period(_)) => (false, None),
                (None, SamplingRate::Frequency(hertz)) => (false, Some(hertz)),
            })
    };
    if stands_for(before) != stands_for(after) {
        return different("samples do not stand for the same in both (-c, -F)".to_owned());
    }
    let lengths = |profile: &Profile| {
        let lengths = profile.meta.lengths?;
        let how = if lengths.short_are_sampled {
            ", and samples of shorter ones"
        } else {
            ""
        };
        Some(format!("from {} us on{how}", lengths.least / 1_000))
    };
    match (lengths(before), lengths(after)) {
        (Some(one), Some(other)) if one != other => {
            different(format!("one has waits {one}, the other {other}"))
        }
        (Some(_), None) | (None, Some(_)) => {
            different("one has time off the CPU, the other has none".to_owned())
        }
        _ => {
            let states = |profile: &Profile| {
                let mut samples = profile.samples.keys();
                samples.any(|sample| sample.state.is_some())
            };
            let any = !before.samples.is_empty() && !after.samples.is_empty();
            if any && states(before) != states(after) {
                different("one tells states apart, the other does not".to_owned())
            } else {
                Ok(())
            }
        }
    }
}

/// A sum with its variance and the number of its intervals or samples.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    value: f64,
    variance: f64,
    events: f64,
}

/// Parameters for the totals of one profile's samples.
struct Adder {
    /// Nanoseconds, or events, per unit of value.
    each: f64,
    /// Length of the shortest interval that has a stack, in ns.
    least_ns: f64,
    /// Variance of each state's time, relative to intervals that occur at random.
    overdispersion: HashMap<Option<State>, f64>,
}

impl Adder {
    fn new(profile: &Profile) -> Adder {
        let sampling = profile.meta.sampling.as_ref();
        let each = match profile.unit {
            Unit::Nanoseconds => 1.0,
            Unit::Samples => sampling.map_or(1, Sampling::each) as f64,
        };
        let mut overdispersion: HashMap<Option<State>, f64> = HashMap::new();
        for bursts in &profile.meta.bursts {
            let most = overdispersion.entry(bursts.state).or_insert(1.0);
            *most = most.max(f64::from(bursts.percent) / 100.0);
        }
        Adder {
            each,
            overdispersion,
            least_ns: profile
                .meta
                .lengths
                .map_or(0.0, |lengths| lengths.least as f64),
        }
    }

    fn total(&self, state: Option<State>, weight: &Weight) -> Total {
        let value = weight.value as f64 * self.each;
        let by_chance = match weight.variance() {
            Some(variance) => variance * self.each * self.each,
            // Time without a stack consists of intervals that were all shorter than this.
            None => value * self.least_ns,
        };
        let events = weight.events.max(1) as f64;
        Total {
            value,
            variance: by_chance * self.overdispersion.get(&state).copied().unwrap_or(1.0),
            events,
        }
    }
}

/// Totals before and after, by subject and state.
#[derive(Default)]
struct Sums(RowMap<(Subject, Option<State>), [Total; 2]>);

impl Sums {
    fn add(&mut self, subject: Subject, state: Option<State>, side: usize, total: Total) {
        let sum = &mut self.0.entry((subject, state))[side];
        sum.value += total.value;
        sum.variance += total.variance;
        sum.events += total.events;
    }

    fn changes(self, seconds: [f64; 2]) -> Vec<Change> {
        let changes = self.0.into_rows().into_iter();
        let changes = changes.map(|((subject, state), [before, after])| {
            // A few events are not normally distributed. One more event on each side, as long as
            // the average event, compensates for that. Then 7 events against none are not
            // significant, as in the binomial test, and 9 events against none are significant.
            let events = before.events + after.events;
            let one_more = (before.variance + after.variance) / events.max(1.0);
            let rate = |total: Total, seconds: f64| Rate {
                value: total.value / seconds,
                deviation: (total.variance + one_more).sqrt() / seconds,
            };
            Change {
                subject,
                state,
                before: rate(before, seconds[0]),
                after: rate(after, seconds[1]),
            }
        });
        let mut changes: Vec<Change> = changes.collect();
        changes.sort_by(|one, other| {
            let by_chance = other.is_significant().cmp(&one.is_significant());
            let size = |change: &Change| change.difference().abs();
            // Equal changes stay in the order of samples.
            by_chance.then(size(other).total_cmp(&size(one)))
        });
        changes
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Bursts, Lengths, folded};

    fn samples(text: &str, seconds: u64) -> Profile {
        let mut profile = folded::read(text.as_bytes(), Unit::Samples, false).unwrap();
        profile.meta.window.length_ns = seconds * 1_000_000_000;
        profile.meta.sampling = Some(Sampling {
            event: "cpu-clock".into(),
            rate: SamplingRate::Frequency(1000),
        });
        profile
    }

    fn change<'a>(diff: &Diff, changes: &'a [Change], name: &str) -> &'a Change {
        let mut changes = changes.iter();
        changes
            .find(|change| diff.names(change.subject).last() == Some(&name))
            .unwrap()
    }

    #[test]
    fn what_grew_beyond_chance_comes_first() {
        let before = samples("a;main;f 900\na;main;g 5000\na;main;h 100\n", 10);
        let after = samples("a;main;f 2400\na;main;g 10000\na;main;h 210\n", 20);
        let diff = diff(&before, &after).unwrap();
        // f: 90 and 120 ms a second; g: 500 and 500; h: 10 and 10.5.
        let f = change(&diff, &diff.functions, "f");
        assert_eq!((f.before.value, f.after.value), (90e6, 120e6));
        // The deviation includes one more event on each side.
        assert_eq!(f.before.deviation, 901_f64.sqrt() * 1e6 / 10.0);
        assert!(f.is_significant());
        let [g, h] = ["g", "h"].map(|name| change(&diff, &diff.functions, name));
        assert!(!g.is_significant() && !h.is_significant());
        assert_eq!(g.difference(), 0.0);
        // A rate without deviation has not changed if it is equal.
        let certain = Rate {
            deviation: 0.0,
            ..g.before
        };
        let same = Change {
            before: certain,
            after: certain,
            ..*g
        };
        assert!(!same.is_significant());
        let order: Vec<&str> = diff
            .functions
            .iter()
            .map(|change| diff.names(change.subject)[0])
            .collect();
        assert!(
            order[..2].contains(&"f") && order[2..].contains(&"h"),
            "{order:?}"
        );
        let stack = change(&diff, &diff.stacks, "f");
        assert_eq!(diff.names(stack.subject), ["a", "main", "f"]);
        assert_eq!(stack.difference(), f.difference());
    }

    #[test]
    fn a_function_that_calls_itself_has_its_time_once() {
        let before = samples("a;f;f;g 100\n", 1);
        let diff = diff(&before, &before).unwrap();
        assert_eq!(change(&diff, &diff.functions, "f").before.value, 100e6);
    }

    #[test]
    fn what_comes_in_bursts_varies_more() {
        let before = samples("a;g 100\na;f 100\n", 1);
        let mut after = samples("a;g 100\na;f 160\n", 1);
        let is_found = |after: &Profile| {
            let diff = diff(&before, after).unwrap();
            change(&diff, &diff.functions, "f").is_significant()
        };
        assert!(is_found(&after));
        let bursts = |state, percent| Bursts { state, percent };
        after.meta.bursts = vec![bursts(Some(State::Running), 900), bursts(None, 90)];
        assert!(is_found(&after));
        after.meta.bursts.push(bursts(None, 900));
        assert!(!is_found(&after));
    }

    #[test]
    fn what_measures_something_else_is_refused() {
        let clock = samples("a;f 1\n", 1);
        let error =
            |before: &Profile, after: &Profile| diff(before, after).unwrap_err().to_string();
        let mut misses = clock.clone();
        misses.meta.sampling.as_mut().unwrap().event = "cache-misses".into();
        assert!(error(&clock, &misses).contains("one samples cpu-clock, the other cache-misses"));
        misses.meta.sampling.as_mut().unwrap().rate = SamplingRate::Period(9);
        let mut often = misses.clone();
        often.meta.sampling.as_mut().unwrap().rate = SamplingRate::Frequency(49);
        assert!(error(&misses, &often).contains("do not stand for the same"));
        let mut times = folded::read(&b"a;f 1\n"[..], Unit::Nanoseconds, false).unwrap();
        assert!(error(&clock, &times).contains("how long it measured"));
        times.meta.window.length_ns = 1;
        assert!(error(&clock, &times).contains("one counts samples, the other time"));
        let mut from = |least| {
            let most = u64::MAX;
            times.meta.lengths = Some(Lengths {
                least,
                most,
                short_are_sampled: least == 9_000,
            });
            times.clone()
        };
        let message = error(&from(1_000), &from(1_000_000));
        assert!(
            message.contains("from 1 us on, the other from 1000 us on"),
            "{message}"
        );
        let mut all = from(9_000);
        all.meta.lengths.as_mut().unwrap().short_are_sampled = false;
        let message = error(&from(9_000), &all);
        assert!(
            message.contains("from 9 us on, and samples of shorter ones, the other from 9 us on"),
            "{message}"
        );
        let mut none = from(1_000);
        none.meta.lengths = None;
        for (one, other) in [(&from(1_000), &none), (&none, &from(1_000))] {
            assert!(error(one, other).contains("one has time off the CPU, the other has none"));
        }
        let mut states = folded::read(&b"a;f_[o] 1\n"[..], Unit::Nanoseconds, false).unwrap();
        states.meta = from(1_000).meta;
        assert!(error(&from(1_000), &states).contains("tells states apart"));
        // A profile without samples does not show whether it distinguishes states.
        let mut empty = from(1_000);
        empty.samples = crate::RowMap::default();
        assert!(diff(&empty, &states).is_ok() && diff(&states, &empty).is_ok());
        assert!(diff(&states, &states).is_ok());
    }
}
