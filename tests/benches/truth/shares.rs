//! Share of CPU time of each function, compared with the CPU time that a program measured in it.

use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::peers::Profiler;
use systemscope_tests::{Folded, Watch, Workload};

use crate::peers::{Peers, describe};

const FUNCTIONS: [&str; 3] = ["f", "g", "h"];
/// Shares of the total work that the functions do, in percent.
const WORK: [f64; 3] = [60.0, 30.0, 10.0];
/// Largest difference between these shares and the shares that the program measured, in percentage
/// points. If the difference is larger, the machine stood still in a function, and no sampler can
/// see that.
const DISTURBED: f64 = 2.0;
const WINDOWS: usize = 4;
/// Allowed error in addition to chance, in percentage points.
pub(crate) const SYSTEMATIC: f64 = 0.5;

/// Measures the program without a timer, with timers of 10 and 20 ms, and with a timer whose period
/// is a multiple of the sampling period. A sampler in step with that timer always hits the same
/// function.
pub(crate) fn rows(table: &mut Table) {
    for (hertz, seconds) in [(49, 16), (999, 5)] {
        let period = 1_000_000 / hertz;
        let in_step = period * 10_000_u64.div_ceil(period);
        for tick_us in [0, 10_000, 20_000, in_step] {
            row(table, hertz, seconds, tick_us);
        }
    }
}

/// Program that has ended, and the results of profilers for it.
struct Measured {
    workload: Workload,
    seen: Folded,
    peers: Vec<(String, Option<Folded>)>,
}

impl Measured {
    fn is_disturbed(&self) -> bool {
        let mut shares = FUNCTIONS.iter().zip(WORK);
        shares.any(|(name, work)| (share_told(&self.workload, name) - work).abs() > DISTURBED)
    }
}

fn measure(hertz: u64, seconds: u64, tick_us: u64) -> Measured {
    let mut workload = Workload::start("shares", &[seconds, tick_us]);
    let others = [
        Profiler::perf_record(hertz, "fp"),
        Profiler::bpftrace_on_cpu(hertz, true),
    ];
    let peers = Peers::attach(others, workload.pid());
    let mut watch = Watch::oncputime(workload.pid(), &format!("-F {hertz}"));
    watch.open();
    workload.go();
    workload.wait_done();
    let seen = watch.close().folded;
    let peers = peers.stop();
    Measured {
        workload,
        seen,
        peers,
    }
}

fn row(table: &mut Table, hertz: u64, seconds: u64, tick_us: u64) {
    let mut measured = measure(hertz, seconds, tick_us);
    for _ in 1..WINDOWS {
        if measured.is_disturbed() {
            measured = measure(hertz, seconds, tick_us);
        }
    }
    let Measured {
        workload,
        seen,
        peers,
    } = measured;
    let said = describe(&peers, |_, folded| error(folded, &workload).text());
    let error = error(&seen, &workload);
    let truth: Vec<String> = FUNCTIONS
        .iter()
        .map(|function| format!("{function} {:.1} %", share_told(&workload, function)))
        .collect();
    let program = match tick_us {
        0 => format!("computes, {hertz} Hz"),
        _ => format!("woken every {} ms, {hertz} Hz", tick_us as f64 / 1e3),
    };
    let stated = format!("within {:.1} points", error.chance + SYSTEMATIC);
    let cells = [
        "share of on-CPU time by function",
        &program,
        &truth.join(", "),
        &error.text(),
        &stated,
        &said,
    ];
    table.row(
        &cells,
        Verdict::of(error.points <= error.chance + SYSTEMATIC),
    );
}

fn share_told(workload: &Workload, function: &str) -> f64 {
    let all: u64 = FUNCTIONS.iter().map(|name| workload.told(name)).sum();
    workload.told(function) as f64 * 100.0 / all as f64
}

/// Error of the sampled shares.
pub(crate) struct Error {
    samples: u64,
    /// Largest difference of a function's share, in percentage points.
    pub(crate) points: f64,
    /// Part of the difference that chance explains at 99.7 %: three standard errors of a share of
    /// that many samples.
    pub(crate) chance: f64,
}

fn error(folded: &Folded, workload: &Workload) -> Error {
    Error::of(&FUNCTIONS.map(|function| {
        let hits = folded.under(function).total();
        (hits, share_told(workload, function))
    }))
}

impl Error {
    /// Returns the error of `functions`, each with its samples and its true share in percent.
    pub(crate) fn of(functions: &[(u64, f64)]) -> Error {
        let samples: u64 = functions.iter().map(|(hits, _)| hits).sum();
        let off = |(hits, truth): &(u64, f64)| {
            let share = *hits as f64 * 100.0 / samples.max(1) as f64;
            (share - truth, truth / 100.0)
        };
        let (points, share) = functions
            .iter()
            .map(off)
            .max_by(|one, other| one.0.abs().total_cmp(&other.0.abs()))
            .expect("a function");
        Error {
            samples,
            points: points.abs(),
            chance: 300.0 * (share * (1.0 - share) / samples.max(1) as f64).sqrt(),
        }
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "{:.1} points off (chance: {:.1}; {} samples)",
            self.points, self.chance, self.samples
        )
    }
}
