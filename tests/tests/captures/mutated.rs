//! Real captures with changed numbers, fields and records. No command panics on such a capture, or
//! takes more memory or time than the size of the capture allows.

use std::time::{Duration, Instant};
use std::{env, fs, thread};

use systemscope_tests::programs::tool::EVERYTHING;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Tool, Turn, Workload};
use tamper::{Random, mutate_messages};

use crate::every_command::{FORMATS, add_times, export, read, report, retain, run_diff};
use crate::written::{
    capture, chains, frames, intervals, meta, pack, request_spans, stacks, thread_of, unpack,
    weighted_samples,
};

/// Default of the environment variable `SYSTEMSCOPE_FUZZ_SECONDS`, in s.
const SECONDS: u64 = 60;
/// Maximum memory of a command on a small file, in bytes.
const MAX_BYTES: usize = 256 << 20;
/// Maximum CPU time of a command on a small file. Tests are compiled without optimization.
const MAX_TIME: Duration = Duration::from_secs(20);

/// Records captures of threads that wait for locks, of samples, and of both on the whole machine.
/// Adds timelines to them.
fn seeds() -> Vec<Vec<u8>> {
    let folder = scratch();
    let mut waits = Workload::start("reasons", &[folder.path().display()]);
    waits.go();
    let pid = waits.pid().to_string();
    let commands = [
        format!("offwaketime --duration 1 --per-thread -p {pid}"),
        format!("offcputime --duration 1 --states --per-thread -p {pid}"),
        format!("oncputime --duration 1 --per-thread -p {pid}"),
        "wallclock --all -d 0.5".to_owned(),
    ];
    let captures = commands.iter().enumerate().map(|(at, command)| {
        let file = folder.path().join(format!("{at}.scope"));
        let run = Tool::new(EVERYTHING).args(command).arg("-o").arg(&file);
        run.run().succeeded();
        let mut seed = Vec::new();
        for mut profile in read(&fs::read(&file).unwrap(), false) {
            add_times(&mut profile);
            capture::write(&profile, &mut seed).unwrap();
        }
        seed
    });
    captures.collect()
}

/// Capture that is saved to a file if the test fails.
struct Kept(Vec<u8>);

impl Drop for Kept {
    fn drop(&mut self) {
        if thread::panicking() {
            let path = env::temp_dir().join("systemscope-mutated.scope");
            let written = fs::write(&path, &self.0);
            eprintln!("the capture is {}: {written:?}", path.display());
        }
    }
}

#[test]
#[ignore = "feeds mutated captures to every command for a minute"]
fn mutated_captures_do_no_harm() {
    let _turn = Turn::share();
    let sound = seeds();
    for capture in &sound {
        assert!(!read(capture, false).is_empty());
    }
    let streams: Vec<Vec<u8>> = sound.iter().map(|capture| unpack(capture)).collect();
    let mut random = Random::new(0x5ca1_ab1e);
    let end = Instant::now() + tamper::time(SECONDS);
    let (mut tried, mut taken) = (0_u64, 0_u64);
    while Instant::now() < end {
        let at = random.below(streams.len());
        let donor = random.below(streams.len());
        let stream = mutate_messages(&streams[at], &streams[donor], &mut random);
        let kept = Kept(pack(&stream));
        let Kept(capture) = &kept;
        let is_partial = random.below(2) == 0;
        let command = random.below(FORMATS.len() + 4);
        let ((), cost) = tamper::cost(|| {
            let profiles = read(capture, is_partial);
            taken += u64::from(!profiles.is_empty());
            match FORMATS.get(command) {
                Some(format) => export(profiles, format),
                None => match command - FORMATS.len() {
                    0 => report(profiles),
                    1 => run_diff(read(&sound[at], false), profiles),
                    2 => retain(profiles),
                    _ => run_diff(profiles, read(&sound[at], false)),
                },
            }
        });
        let is_cheap = cost.time < MAX_TIME && cost.bytes < MAX_BYTES;
        assert!(is_cheap, "{cost:?} for command {command}");
        tried += 1;
    }
    println!("{tried} mutated captures, of which {taken} were read");
    assert!(taken > tried / 8, "{taken} of {tried}");
}

/// Sums do not overflow, because a capture with larger sums is refused.
#[test]
fn numbers_as_large_as_can_be_are_added_up() {
    let rows = [[1, 0, 1], [2, 0, 0], [3, 1, 0]];
    // The sums of two such captures are four fifths of the largest sum that a reader accepts.
    let most = 1 << 55;
    let times = |thread: Vec<u8>, most| {
        let samples = [5, 6, 7, 3].map(|state| weighted_samples(&rows, state, most, most));
        let chain = chains(&[1, 2]);
        let timeline = [intervals(&[1, 2, 0], most), request_spans(&[0, 1, 2], most)];
        capture(&[
            meta(),
            frames(8),
            stacks(8),
            chain,
            samples.concat(),
            thread,
            timeline.concat(),
        ])
    };
    assert!(read(&times(Vec::new(), u64::MAX), false).is_empty());
    assert!(read(&times(thread_of(u64::MAX, 0), 1), false).is_empty());
    for thread in [thread_of(most, most).repeat(3), thread_of(0, 7), Vec::new()] {
        let capture = times(thread, most);
        let profiles = || read(&[&capture[..], &capture].concat(), false);
        assert_eq!(profiles().len(), 2);
        for format in FORMATS {
            export(profiles(), format);
        }
        report(profiles());
        run_diff(profiles(), profiles());
        retain(profiles());
    }
}
