//! Feeds tampered folded stacks and captures to their readers. A reader must not panic, nor take
//! more time and memory than the size of the input justifies.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod captures;
mod folded;

use std::cell::Cell;
use std::path::Path;
use std::{env, fs};

use capture::{KeySamples, LanePart, LaneSample, Stream};
use profile::{
    Interval, Profile, RequestSpan, Sample, Shares, State, ThreadId, TimedSample, Unit,
    folded::read,
};

#[global_allocator]
static ALLOCATOR: tamper::Measured = tamper::Measured;

/// Seeds that contain each convention of folded text once.
const SEEDS: [&str; 4] = [
    "main;f;g 17\nmain;f 3\nmy thread 2 7\n",
    "a-b/c-12/34;main;f(int, int);schedule_[k]_[o] 1500\nx-1/2;[Missed User Stack];-;read_[r] 1\n",
    "a-1/2;main;-;wait_[o];--;wake;-;put;main;b-3/4;--;tick;[timer] 5\n",
    "a-1/2;f_[c] 18446744073709551615\n\r\na-1/2;f_[c] 1",
];

fn seeds() -> Vec<Vec<u8>> {
    SEEDS.map(|seed| seed.as_bytes().to_vec()).to_vec()
}

#[test]
fn tampered_stacks_do_no_harm() {
    let checked = Cell::new(0);
    tamper::tamper("folded texts", &seeds(), |bytes| {
        folded::check(bytes);
        checked.set(checked.get() + 1);
    });
    assert!(checked.get() > SEEDS.len());
}

/// Adds an interval, a timed sample and a request span for each sample. The parent of each span
/// is the span before.
fn add_times(profile: &mut Profile) {
    let thread = ThreadId { pid: 1, tid: 2 };
    let samples: Vec<Sample> = profile.samples.keys().copied().collect();
    let mut parent = None;
    for (at, sample) in (0..).zip(samples) {
        let id = profile.samples.id(sample);
        let start_ns = 1_000_000 * at;
        profile.times.intervals.push(Interval {
            thread,
            start_ns,
            shares: Shares::all(State::Blocked, 999),
            sample: Some(id),
        });
        profile.times.timed_samples.push(TimedSample {
            thread,
            cpu: 3,
            time_ns: start_ns,
            sample: id,
        });
        parent = profile.times.request_spans.add(RequestSpan {
            name: sample.comm,
            thread,
            start_ns,
            end_ns: start_ns + 5_000,
            parent,
        });
    }
}

/// Returns a capture whose timeline comes before its tables.
fn streamed(profile: &mut Profile) -> Vec<u8> {
    let samples: Vec<Sample> = profile.samples.keys().copied().collect();
    let rows = samples.iter().map(|row| profile.samples.id(*row));
    let keys: Vec<KeySamples> = rows
        .map(|id| KeySamples {
            sample: Some(id),
            runnable: Some(id),
        })
        .collect();
    let thread = ThreadId { pid: 1, tid: 1 };
    let parts = (0..).zip(&keys).map(|(key, _)| LanePart {
        thread,
        start_ns: 1_000 * u64::from(key),
        stretch: Shares::all(State::Running, 500),
        blocked_ns: 300,
        runnable_ns: 200,
        key: Some(key),
    });
    let timed = (0..).zip(&keys).map(|(key, _)| LaneSample {
        thread,
        cpu: 0,
        time_ns: 1_000 * u64::from(key),
        key,
    });
    let mut capture = Vec::new();
    let mut stream = Stream::new(&mut capture, profile).unwrap();
    let (parts, timed) = (parts.collect::<Vec<_>>(), timed.collect::<Vec<_>>());
    stream.add(&parts, &timed).unwrap();
    stream.finish(profile, &keys).unwrap();
    capture
}

/// Returns the uncompressed content of two captures of each seed.
fn capture_seeds() -> Vec<Vec<u8>> {
    let seeds = seeds().into_iter().flat_map(|seed| {
        let mut profile = read(&seed[..], Unit::Samples, false).unwrap();
        add_times(&mut profile);
        let mut capture = Vec::new();
        capture::write(&profile, &mut capture).unwrap();
        let captures = [capture, streamed(&mut profile)];
        captures.map(|capture| zstd::decode_all(&capture[8..]).unwrap())
    });
    seeds.collect()
}

#[test]
fn tampered_captures_do_no_harm() {
    tamper::tamper("captures", &capture_seeds(), captures::check);
}

#[test]
fn a_line_of_nothing_but_delimiters_is_read() {
    for piece in [&b";"[..], b"--;", b"-;", b";--;a", b"\xff;", b"_[o];"] {
        let mut line = b"x;".to_vec();
        line.extend(piece.repeat(100_000));
        line.extend(b"x 1\n");
        folded::check(&line);
    }
}

/// Writes the seeds to `SYSTEMSCOPE_FUZZ_SEEDS`, a directory with a folder for each fuzz
/// target.
#[test]
fn seeds_for_the_fuzz_target() {
    let directory = env::var_os("SYSTEMSCOPE_FUZZ_SEEDS");
    for (target, seeds) in [("folded", seeds()), ("capture", capture_seeds())] {
        for (index, seed) in seeds.iter().enumerate() {
            assert!(!seed.is_empty(), "{target} {index}");
            if let Some(directory) = &directory {
                let folder = Path::new(directory).join(target);
                fs::write(folder.join(format!("seed-{index}")), seed).unwrap();
            }
        }
    }
    for seed in seeds() {
        let read = read(&seed[..], Unit::Samples, false).unwrap();
        assert!(!read.samples.is_empty());
    }
}
