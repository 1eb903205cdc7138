//! Time to write a large profile in each format.

use std::fs::File;
use std::io::BufWriter;
use std::time::Instant;

use formats::FORMATS;
use profile::{FrameKind, Lengths, Profile, Sample, Stack, State, ThreadId, Unit, Weight};
use systemscope_tests::Tool;
use systemscope_tests::printed::output::median;
use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::workload::scratch;

use crate::figures::{WALL_CLOCK, format_spread};

const ROUNDS: usize = 3;
pub(crate) const STACKS: u32 = 100_000;
const FRAMES: u32 = 30;
const THREADS: u32 = 50;
const MAX_SECONDS: f64 = 2.0;

/// Measures `systemscope export` from start to end.
pub(crate) fn written(table: &mut Table) {
    let folder = scratch();
    let file = folder.path().join("large.scope");
    let writer = File::create(&file).expect("a file");
    capture::write(&large(), BufWriter::new(writer)).expect("space for the capture");
    for format in FORMATS {
        let output = folder.path().join("written");
        let seconds: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let begun = Instant::now();
                let tool = Tool::new("systemscope").arg("export").arg(&file);
                let tool = tool.args("--format").arg(format.name());
                tool.arg("-o").arg(&output).run().succeeded();
                begun.elapsed().as_secs_f64()
            })
            .collect();
        let what = format!(
            "s to read {STACKS} stacks of {FRAMES} frames and write them as {}",
            format.name()
        );
        let bound = format!("less than {MAX_SECONDS}");
        let cells: [&str; 5] = [
            &what,
            "systemscope export",
            &format_spread(&seconds, 2),
            WALL_CLOCK,
            &bound,
        ];
        table.row(&cells, Verdict::of(median(seconds) < MAX_SECONDS));
    }
}

/// Returns a profile of [`STACKS`] distinct stacks of blocked threads.
pub(crate) fn large() -> Profile {
    let mut profile = Profile::new(Unit::Nanoseconds);
    profile.meta.window.length_ns = 10_000_000_000;
    profile.meta.lengths = Some(Lengths {
        least: 1_000,
        most: u64::MAX,
        short_are_sampled: false,
    });
    for number in 0..STACKS {
        let mut stack = Stack::default();
        for depth in 0..FRAMES {
            // All stacks share the lower frames. The upper frames spell the number of the stack.
            let digit = number / 10_u32.pow(depth.saturating_sub(FRAMES - 6).min(5)) % 10;
            let function = if depth < FRAMES - 6 {
                depth
            } else {
                depth * 10 + digit
            };
            let name = format!("some_namespace::function_{function}");
            let frame = profile.frame(&name, FrameKind::User);
            stack.user = profile.stacks.called(stack.user, frame);
        }
        let thread = number % THREADS;
        let comm = profile.names.text(&format!("worker-{thread}"));
        let id = ThreadId {
            pid: 1,
            tid: thread + 1,
        };
        let sample = Sample {
            state: Some(State::Blocked),
            ..Sample::new(comm, Some(id), stack)
        };
        let weight = Weight {
            value: 50_000,
            events: 1,
            longest: 50_000,
            shortest: 50_000,
            squares: 2_304,
        };
        profile.add(sample, weight);
    }
    profile
}
