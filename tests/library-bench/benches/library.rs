//! Speed of the tools' libraries alone: building a table, folding, reading, merging and drawing.
//! `make bench` runs this benchmark, and prints criterion's figures.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// criterion's macros define functions without doc comments.
#![allow(missing_docs)]

use std::fs::{self, File};
use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use export::Format;
use export::folded::Folded;
use export::svg::{self, Caption, Colours};
use profile::merge::merge;
use profile::{
    Clock, FrameKind, Profile, Sample, Stack, State, Thread, ThreadId, Unit, Weight, folded,
};

const THREADS: u32 = 50;
const STACKS_A_THREAD: u32 = 100;
const FRAMES: u32 = 30;

/// Returns as many stacks as a busy server has in a minute. They are deep and have many common
/// frames.
fn stacks(unit: Unit, state: Option<State>) -> Profile {
    let mut profile = Profile::new(unit);
    for number in 0..STACKS_A_THREAD {
        let mut stack = Stack::default();
        for depth in 0..FRAMES {
            // Two of three frames are the same in all stacks.
            let function = (depth * 7 + number * (depth % 3 / 2)) % 500;
            let name = format!("some_namespace::function_{function}");
            let (part, kind) = if depth > 20 {
                (&mut stack.kernel, FrameKind::Kernel)
            } else {
                (&mut stack.user, FrameKind::User)
            };
            let frame = profile.frame(&name, kind);
            *part = profile.stacks.called(*part, frame);
        }
        for thread in 0..THREADS {
            let comm = profile.names.text(&format!("worker-{thread}"));
            let id = ThreadId {
                pid: 1,
                tid: thread + 1,
            };
            let sample = Sample {
                state,
                ..Sample::new(comm, Some(id), stack)
            };
            let weight = Weight {
                value: u64::from(number + 1) * 10_000,
                events: 1,
                longest: 10_000,
                shortest: 10_000,
                ..Weight::default()
            };
            profile.add(sample, weight);
        }
    }
    profile
}

/// Gives each thread an account of its states.
fn add_clocks(profile: &mut Profile) {
    let clock = Clock {
        ended_ns: 1_000_000_000,
        running_ns: 400_000_000,
        runnable_ns: 100_000_000,
        blocked_ns: 500_000_000,
        ..Clock::default()
    };
    for tid in 1..=THREADS {
        let thread = Thread {
            id: ThreadId { pid: 1, tid },
            comm: profile.names.text(&format!("worker-{}", tid - 1)),
            clock,
        };
        profile.threads.push(thread);
    }
}

/// Opens the libc that this process has mapped.
fn libc() -> File {
    let maps = fs::read_to_string("/proc/self/maps").expect("our own mappings");
    let path = maps
        .lines()
        .filter_map(|line| line.split_once('/'))
        .find(|(_, path)| path.contains("libc.so") || path.contains("libc-"));
    let (_, path) = path.expect("libc among our mappings");
    File::open(format!("/{path}")).expect("open libc")
}

fn tables(criterion: &mut Criterion) {
    let libc = libc();
    criterion.bench_function("build the unwind table of libc", |bencher| {
        bencher.iter(|| unwind::build(black_box(&libc)).expect("a table"));
    });
}

fn folding(criterion: &mut Criterion) {
    let profile = stacks(Unit::Nanoseconds, Some(State::Blocked));
    let options = export::Options {
        per_thread: true,
        ..export::Options::default()
    };
    let write = || {
        let mut text = Vec::new();
        Folded.write(&profile, &options, &mut text).expect("memory");
        text
    };
    criterion.bench_function("fold 5,000 stacks of 30 frames", |bencher| {
        bencher.iter(write);
    });
    let text = write();
    criterion.bench_function("read them back", |bencher| {
        bencher.iter(|| folded::read(&text[..], Unit::Nanoseconds, true).expect("folded text"));
    });
}

fn merging(criterion: &mut Criterion) {
    let on_cpu = stacks(Unit::Samples, None);
    let mut off_cpu = stacks(Unit::Nanoseconds, Some(State::Blocked));
    add_clocks(&mut off_cpu);
    criterion.bench_function("merge two times 5,000 stacks of 50 threads", |bencher| {
        bencher.iter(|| merge(&on_cpu, &off_cpu));
    });
}

fn drawing(criterion: &mut Criterion) {
    let profile = stacks(Unit::Nanoseconds, Some(State::Blocked));
    criterion.bench_function("draw 5,000 stacks as a flame graph", |bencher| {
        bencher.iter(|| {
            let mut text = Vec::new();
            let samples = profile.values();
            let caption = Caption::default();
            svg::write(
                &profile,
                samples,
                &export::Options::default(),
                Colours::States,
                &caption,
                &mut text,
            )
            .expect("memory");
            text
        });
    });
}

criterion_group! {
    name = library;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = tables, folding, merging, drawing
}
criterion_main!(library);
