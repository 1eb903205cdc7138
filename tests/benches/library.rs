//! What the tools do in user space, by itself: building a table, folding,
//! reading, merging and drawing. Run by `make bench`, which prints criterion's
//! figures.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// criterion's macros make functions without docs.
#![allow(missing_docs)]

use std::fs::{self, File};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use export::svg::{self, Caption, Colours};
use profile::merge::merge;
use profile::{
    Clock, Frame, FrameKind, Profile, Stack, State, Thread, ThreadId, Unit, Weight, folded,
};

const THREADS: u32 = 50;
const STACKS_A_THREAD: u32 = 100;
const FRAMES: u32 = 30;

/// As many stacks as a busy server has in a minute, deep and with much in common.
fn stacks(unit: Unit, state: Option<State>) -> Profile {
    let mut profile = Profile::new(unit);
    let names: Vec<Arc<str>> = (0..500)
        .map(|n| Arc::from(format!("some_namespace::function_{n}")))
        .collect();
    let frames = |stack: u32| -> Arc<[Frame]> {
        (0..FRAMES)
            .map(|depth| Frame {
                // Two of three frames are the same in all of them.
                name: names[(depth * 7 + stack * (depth % 3 / 2)) as usize % names.len()].clone(),
                module: None,
                kind: if depth > 20 {
                    FrameKind::Kernel
                } else {
                    FrameKind::User
                },
            })
            .collect()
    };
    for number in 0..STACKS_A_THREAD {
        let frames = frames(number);
        for thread in 0..THREADS {
            let stack = Stack {
                comm: format!("worker-{thread}").into(),
                thread: Some(ThreadId {
                    pid: 1,
                    tid: thread + 1,
                }),
                frames: frames.clone(),
                state,
                wakers: Vec::new(),
            };
            let weight = Weight {
                value: u64::from(number + 1) * 10_000,
                events: 1,
                longest: 10_000,
            };
            profile.add(stack, weight);
        }
    }
    profile
}

fn clocks() -> Vec<Thread> {
    let clock = Clock {
        ended_ns: 1_000_000_000,
        running_ns: 400_000_000,
        runnable_ns: 100_000_000,
        blocked_ns: 500_000_000,
        ..Clock::default()
    };
    (1..=THREADS)
        .map(|tid| Thread {
            id: ThreadId { pid: 1, tid },
            comm: format!("worker-{}", tid - 1).into(),
            clock,
        })
        .collect()
}

/// The file of libc that this process has mapped.
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
    let options = export::folded::Options {
        per_thread: true,
        ..export::folded::Options::default()
    };
    let write = || {
        let mut text = Vec::new();
        export::folded::write(&profile, &options, &mut text).expect("memory");
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
    let off_cpu = stacks(Unit::Nanoseconds, Some(State::Blocked));
    criterion.bench_function("merge two times 5,000 stacks of 50 threads", |bencher| {
        bencher.iter_batched(
            || (clocks(), on_cpu.clone(), off_cpu.clone()),
            |(clocks, on_cpu, off_cpu)| merge(clocks, on_cpu, off_cpu),
            BatchSize::LargeInput,
        );
    });
}

fn drawing(criterion: &mut Criterion) {
    let profile = stacks(Unit::Nanoseconds, Some(State::Blocked));
    criterion.bench_function("draw 5,000 stacks as a flame graph", |bencher| {
        bencher.iter(|| {
            let mut text = Vec::new();
            let stacks = profile.stacks.iter();
            let stacks = stacks.map(|(stack, weight)| (stack, weight.value));
            svg::write(stacks, Colours::States, &Caption::default(), &mut text).expect("memory");
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
