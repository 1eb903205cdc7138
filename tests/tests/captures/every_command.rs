//! Commands on captures, run within this process. This is fast enough for thousands of captures.

use std::collections::BTreeMap;
use std::io;

use capture::{Partial, read_all, read_what_is_whole};
use export::{Options, diff as changes};
use formats::by_name;
use profile::diff::diff;
use profile::join::{Joined, join};
use profile::merge::{Merged, merge};
use profile::{
    Interval, LastNames, Profile, RequestSpan, Sample, Shares, State, ThreadId, TimedSample, Unit,
};
use report::Run;
use report::overview::Look;
use wallclock::Limits;

/// Formats that captures are exported to.
pub(crate) const FORMATS: [&str; 12] = [
    "folded",
    "html",
    "classic",
    "svg",
    "pprof",
    "speedscope",
    "chrome",
    "firefox",
    "perf-script",
    "json",
    "waits",
    "scope",
];
/// Command lines for the forms of `systemscope diff`.
pub(crate) const DIFFS: [&str; 4] = [
    "diff",
    "diff --stacks",
    "diff --format json",
    "diff --format svg",
];

/// Reads a file as a command does, with or without `--partial`. Returns no profile if the reader
/// refuses the file.
pub(crate) fn read(file: &[u8], is_partial: bool) -> Vec<Profile> {
    if !is_partial {
        return read_all(file).unwrap_or_default();
    }
    let partials = read_what_is_whole(file).unwrap_or_default().into_iter();
    partials.map(|Partial { profile, .. }| profile).collect()
}

/// Adds a timeline to a profile: an interval, a timed sample and a request span for each sample.
/// Each request span is inside the previous one.
pub(crate) fn add_times(profile: &mut Profile) {
    let samples: Vec<Sample> = profile.samples.keys().copied().collect();
    let mut parent = None;
    for (at, sample) in (0..).zip(samples) {
        let id = profile.samples.id(sample);
        let thread = sample.thread.unwrap_or(ThreadId { pid: 1, tid: 1 });
        let start_ns = profile.meta.window.start_ns + 1_000 * at;
        profile.times.intervals.push(Interval {
            thread,
            start_ns,
            shares: Shares::all(sample.state.unwrap_or(State::Running), 500),
            sample: Some(id),
        });
        profile.times.timed_samples.push(TimedSample {
            thread,
            cpu: 0,
            time_ns: start_ns,
            sample: id,
        });
        parent = profile.times.request_spans.add(RequestSpan {
            name: sample.comm,
            thread,
            start_ns,
            end_ns: start_ns + 500,
            parent,
        });
    }
}

/// Filters captures as flags do, and writes the remaining rows into one capture.
pub(crate) fn retain(mut profiles: Vec<Profile>) {
    for profile in &mut profiles {
        let last = LastNames::new(profile);
        profile.retain_threads(&last, |name| name.len() % 2 == 0);
        profile.retain_idle(false);
        let _ = profile.check_times();
    }
    export(profiles, "scope");
}

/// Runs `systemscope export`.
pub(crate) fn export(profiles: Vec<Profile>, format: &str) {
    let Ok(joined) = join(profiles) else { return };
    let format = by_name(format).unwrap();
    let options = Options::default();
    let profile = joined.into_profile();
    format.write(&profile, &options, &mut io::sink()).unwrap();
}

/// Runs `systemscope report`.
pub(crate) fn report(profiles: Vec<Profile>) {
    let merged = match join(profiles) {
        Ok(Joined::Merged(merged)) => *merged,
        Ok(Joined::One(profile)) if Merged::is_merged(&profile) => Merged::from_profile(*profile),
        Ok(Joined::One(times)) => merge(&Profile::new(Unit::Samples), &times),
        Err(_) => return,
    };
    let run = Run::of(&merged);
    let (before, limits) = (BTreeMap::new(), Limits::default());
    let look = Look::default();
    wallclock::write_tables(&run, &merged, &before, limits, look, "", &mut io::sink()).unwrap();
}

/// Runs `systemscope diff` in all of its forms.
pub(crate) fn run_diff(before: Vec<Profile>, after: Vec<Profile>) {
    let [Ok(before), Ok(after)] = [before, after].map(join) else {
        return;
    };
    let [before, after] = [before, after].map(Joined::into_profile);
    let Ok(all) = diff(&before, &after) else {
        return;
    };
    let sink = &mut io::sink();
    for shown in [changes::Shown::Functions, changes::Shown::Stacks] {
        changes::write_table(&before, &after, &all, shown, 30, sink).unwrap();
    }
    changes::write_json(&before, &after, &all, sink).unwrap();
    changes::write_svg(&before, &after, sink).unwrap();
}
