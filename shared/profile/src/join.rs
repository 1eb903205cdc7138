//! Joins several captures of one window, from several tools or several runs of one tool.

use std::collections::HashSet;

use thiserror::Error;

use crate::import::Import;
use crate::merge::{Merged, merge};
use crate::{Id, Process, Profile, Sample, Thread, Unit, Window};

/// Maximum difference of the starts and ends of windows, in percent of the first window's
/// length.
const TOLERANCE: u64 = 10;

/// Captures after joining.
#[derive(Debug)]
pub enum Joined {
    /// The sum of captures that count the same.
    One(Box<Profile>),
    /// Samples and off-CPU times, merged with the accounts of all threads.
    Merged(Box<Merged>),
}

/// Reason why captures cannot be joined.
#[derive(Debug, Error)]
pub enum Error {
    /// There is no capture.
    #[error("there is no capture")]
    None,
    /// The captures are of different windows.
    #[error(
        "the captures are of different windows: {0}; measure at the same time, or read them one by one"
    )]
    Windows(String),
    /// The captures count different quantities.
    #[error("the captures count different things: {0} and {1}; read them one by one")]
    Different(String, String),
    /// The off-CPU times lack the accounts to which samples are scaled.
    #[error(
        "the off-CPU capture has no accounts of threads, so samples cannot be put beside it; it comes from another program"
    )]
    NoAccounts,
}

/// Joins captures. Captures that count the same are added up. Samples of a clock are merged with
/// off-CPU times.
///
/// # Errors
/// The captures are of different windows, count different quantities, or lack accounts.
pub fn join(profiles: Vec<Profile>) -> Result<Joined, Error> {
    check_windows(&profiles)?;
    let (samples, times): (Vec<_>, Vec<_>) =
        (profiles.into_iter()).partition(|profile| profile.unit == Unit::Samples);
    match (sum(samples)?, sum(times)?) {
        (None, None) => Err(Error::None),
        (Some(one), None) | (None, Some(one)) => Ok(Joined::One(Box::new(one))),
        (Some(samples), Some(times)) => {
            if samples
                .meta
                .sampling
                .as_ref()
                .is_some_and(|it| it.nanoseconds().is_none())
            {
                return Err(Error::Different(
                    describe_unit(&samples),
                    describe_unit(&times),
                ));
            }
            if times.threads.is_empty() {
                return Err(Error::NoAccounts);
            }
            Ok(Joined::Merged(Box::new(merge(&samples, &times))))
        }
    }
}

impl Joined {
    /// Returns the joined captures as one profile.
    #[must_use]
    pub fn into_profile(self) -> Profile {
        match self {
            Joined::One(profile) => *profile,
            Joined::Merged(merged) => merged.into_profile(),
        }
    }
}

/// Describes the unit of a profile's values.
fn describe_unit(profile: &Profile) -> String {
    match (&profile.meta.sampling, profile.unit) {
        (Some(sampling), _) => sampling.event.to_string(),
        (None, Unit::Samples) => "samples".to_owned(),
        (None, Unit::Nanoseconds) => "time off the CPU".to_owned(),
    }
}

/// Returns whether two profiles are of one window on one machine, so that they can be joined.
#[must_use]
pub fn are_of_one_window(one: &Profile, other: &Profile) -> bool {
    let apart = apart_ns(one.meta.window, other.meta.window);
    one.meta.host == other.meta.host && apart <= tolerance_ns(one.meta.window)
}

/// Returns the larger of the differences of the starts and of the ends of two windows.
fn apart_ns(one: Window, other: Window) -> u64 {
    let [stop, other_stop] =
        [one, other].map(|window| window.start_ns.saturating_add(window.length_ns));
    let starts = one.start_ns.abs_diff(other.start_ns);
    starts.max(stop.abs_diff(other_stop))
}

fn tolerance_ns(window: Window) -> u64 {
    window.length_ns / (100 / TOLERANCE)
}

fn check_windows(profiles: &[Profile]) -> Result<(), Error> {
    let Some((first, others)) = profiles.split_first() else {
        return Ok(());
    };
    for other in others {
        let apart = apart_ns(first.meta.window, other.meta.window);
        if apart > tolerance_ns(first.meta.window) {
            let seconds = |ns: u64| ns as f64 / 1e9;
            return Err(Error::Windows(format!(
                "one is {:.3} s long, another {:.3} s, and they are {:.3} s apart",
                seconds(first.meta.window.length_ns),
                seconds(other.meta.window.length_ns),
                seconds(apart)
            )));
        }
    }
    Ok(())
}

/// Returns the sum of profiles that count the same, or `None` if there are none.
fn sum(profiles: Vec<Profile>) -> Result<Option<Profile>, Error> {
    let mut profiles = profiles.into_iter();
    let Some(mut sum) = profiles.next() else {
        return Ok(None);
    };
    for profile in profiles {
        if sum.meta.sampling != profile.meta.sampling {
            return Err(Error::Different(
                describe_unit(&sum),
                describe_unit(&profile),
            ));
        }
        add(&mut sum, &profile);
    }
    Ok(Some(sum))
}

fn add(sum: &mut Profile, profile: &Profile) {
    let import = Import::new(sum, profile);
    let samples = profile.samples.iter();
    let samples = samples.map(|(sample, weight)| sum.add(import.sample(*sample), *weight));
    let samples: Vec<Id<Sample>> = samples.collect();
    import.add_times(&mut sum.times, &profile.times, |sample| {
        samples.get(sample.index()).copied()
    });
    // A thread that two captures measured has one account.
    let life = |thread: &Thread| (thread.id, thread.clock.started_ns, thread.clock.ended_ns);
    let known: HashSet<_> = sum.threads.iter().map(life).collect();
    let threads = profile.threads.iter().map(|thread| import.thread(*thread));
    let new = threads.filter(|thread| !known.contains(&life(thread)));
    sum.threads.extend(new);
    let run = |process: &Process| (process.pid, process.start_ticks);
    let known: HashSet<_> = sum.processes.iter().map(run).collect();
    let processes = profile.processes.iter();
    let new = processes.filter(|process| !known.contains(&run(process)));
    sum.processes.extend(new.cloned());
    sum.losses += profile.losses;
    sum.walk_ends += profile.walk_ends;
    sum.meta.bursts.extend(&profile.meta.bursts);
    let least_ns = sum
        .meta
        .timeline_least_ns
        .zip(profile.meta.timeline_least_ns);
    sum.meta.timeline_least_ns = least_ns.map(|(one, other)| one.max(other));
    if sum.meta.targets != profile.meta.targets {
        sum.meta.targets = format!("{}, {}", sum.meta.targets, profile.meta.targets).into();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{
        Clock, Interval, Rate, RequestSpan, Sampling, Shares, State, ThreadId, TimedSample, folded,
    };

    fn profile(text: &str, unit: Unit) -> Profile {
        let mut profile = folded::read(text.as_bytes(), unit, true).unwrap();
        profile.meta.window.length_ns = 1_000_000;
        profile
    }

    fn sampled(text: &str, event: &str) -> Profile {
        let mut profile = profile(text, Unit::Samples);
        profile.meta.sampling = Some(Sampling {
            event: event.into(),
            rate: Rate::Frequency(1000),
        });
        profile
    }

    /// Makes times of thread 1/2, which lived for a millisecond, 400 us of it on the CPU.
    fn timed(text: &str) -> Profile {
        let mut profile = profile(text, Unit::Nanoseconds);
        let comm = profile.names.text("a");
        profile.threads.push(Thread {
            id: ThreadId { pid: 1, tid: 2 },
            comm,
            clock: Clock {
                ended_ns: 1_000_000,
                running_ns: 400_000,
                blocked_ns: 600_000,
                ..Clock::default()
            },
        });
        profile
    }

    fn values(profile: &Profile) -> Vec<(Option<State>, u64)> {
        let mut values: Vec<_> = profile.values().collect();
        values.sort_by_key(|(sample, value)| (sample.state, *value));
        values
            .iter()
            .map(|(sample, value)| (sample.state, *value))
            .collect()
    }

    #[test]
    fn samples_and_times_are_merged() {
        let captures = vec![
            timed("a-1/2;main;read_[o] 600000\n"),
            sampled("a-1/2;main;burn 3\na-1/2;main 1\n", "cpu-clock"),
        ];
        let joined = join(captures).unwrap();
        let Joined::Merged(merged) = &joined else {
            unreachable!("both are there")
        };
        assert_eq!(merged.threads[0].samples, 4);
        let profile = joined.into_profile();
        let running = Some(State::Running);
        let expected = [
            (running, 100_000),
            (running, 300_000),
            (Some(State::Blocked), 600_000),
        ];
        assert_eq!(values(&profile), expected);
        assert_eq!(
            (profile.threads.len(), profile.unit),
            (1, Unit::Nanoseconds)
        );
    }

    #[test]
    fn rows_of_time_of_all_are_kept() {
        let capture = |text: &str, tid, start_ns| {
            let mut profile = profile(text, Unit::Nanoseconds);
            let sample = Id::new(1);
            let (row, weight) = profile.samples.row(sample).unwrap();
            let (name, length_ns) = (row.comm, weight.value);
            let thread = ThreadId { pid: 1, tid };
            profile.times.intervals.push(Interval {
                thread,
                start_ns,
                shares: Shares::all(State::Blocked, length_ns),
                sample: Some(sample),
            });
            profile.times.timed_samples.push(TimedSample {
                thread,
                cpu: tid,
                time_ns: start_ns,
                sample,
            });
            let span = RequestSpan {
                name,
                thread,
                start_ns,
                end_ns: start_ns + length_ns,
                parent: None,
            };
            let parent = profile.times.request_spans.add(span);
            let child = RequestSpan { parent, ..span };
            profile.times.request_spans.add(child).unwrap();
            profile
        };
        // Names, stacks and samples have other numbers in the second profile.
        let one = capture("a-1/2;x_[o] 1\na-1/2;f_[o] 10\n", 2, 100);
        let other = capture("b-1/3;y_[o] 2\nb-1/3;g_[o] 20\n", 3, 200);
        let both = join(vec![one, other]).unwrap().into_profile();
        let named = |name: crate::Name| &*both.names[name];
        let sample = |id: Id<Sample>| {
            let (sample, weight) = both.samples.row(id).unwrap();
            (named(sample.comm), weight.value)
        };
        let intervals = both.times.intervals.iter();
        let intervals = intervals.map(|it| (it.start_ns, sample(it.sample.unwrap())));
        assert!(intervals.eq([(100, ("a", 10)), (200, ("b", 20))]));
        let timed = both.times.timed_samples.iter();
        let timed = timed.map(|it| (it.cpu, it.time_ns, sample(it.sample)));
        assert!(timed.eq([(2, 100, ("a", 10)), (3, 200, ("b", 20))]));
        let spans = both.times.request_spans.iter();
        let spans = spans.map(|span| (named(span.name), span.end_ns, span.parent.map(Id::index)));
        let expected = [("a", None), ("a", Some(0)), ("b", None), ("b", Some(2))];
        let ends = [110, 110, 220, 220];
        let expected = expected
            .iter()
            .zip(ends)
            .map(|(&(name, parent), end)| (name, end, parent));
        assert!(spans.eq(expected));
    }

    #[test]
    fn what_is_not_of_one_window_or_counts_something_else_is_refused() {
        let error = |captures| join(captures).unwrap_err().to_string();
        assert!(error(Vec::new()).contains("no capture"));
        let mut later = sampled("a-1/2;main 3\n", "cpu-clock");
        later.meta.window.start_ns = 100_001;
        let now = || sampled("a-1/2;main 3\n", "cpu-clock");
        let message = error(vec![now(), later.clone()]);
        assert!(
            message.contains("different windows: one is 0.001 s long, another 0.001 s"),
            "{message}"
        );
        later.meta.window.start_ns = 5_000_000_000;
        let message = error(vec![now(), later.clone()]);
        assert!(message.contains("and they are 5.000 s apart"), "{message}");
        later.meta.window.start_ns = 100_000;
        assert!(join(vec![now(), later.clone()]).is_ok());
        later.meta.window.length_ns = 900_000;
        assert!(join(vec![now(), later]).is_ok());
        let misses = sampled("a-1/2;main 3\n", "cache-misses");
        let message = error(vec![now(), misses.clone()]);
        assert!(message.contains("cpu-clock and cache-misses"), "{message}");
        let message = error(vec![misses, timed("a-1/2;main 5\n")]);
        assert!(
            message.contains("cache-misses and time off the CPU"),
            "{message}"
        );
        let times = profile("a-1/2;main 5\n", Unit::Nanoseconds);
        assert!(error(vec![now(), times]).contains("no accounts"));
    }
}
