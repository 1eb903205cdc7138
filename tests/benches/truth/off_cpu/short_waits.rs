//! Waits shorter than -m: the time in each function, estimated from a sample of the intervals.

use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::truth::short_waits::{ASLEEP, Expected, PUSHED, measure};

const SECONDS: u64 = 10;
/// Largest error in standard errors. Chance exceeds it once in 370 runs.
const MAX_ERRORS: u64 = 3;

/// Measures sleeps and waits for a CPU of 5 to 900 µs, which are the same in each round.
pub(crate) fn rows(table: &mut Table) {
    let measured = measure(SECONDS);
    let stacks = measured.stacks();
    let milliseconds = |ns: u64| format!("{:.0}", ns as f64 / 1e6);
    for (what, functions) in [
        ("time in sleeps below -m by function", ASLEEP),
        ("time waiting for a CPU below -m by function", PUSHED),
    ] {
        let figures: Vec<(Expected, u64)> = functions
            .iter()
            .map(|function| {
                let expected = measured.expected(function);
                (expected, stacks.under(function).total())
            })
            .collect();
        let worst = figures.iter().map(|(expected, shown)| {
            let off = shown.abs_diff(expected.told_ns) as f64;
            off / expected.chance_ns.max(1) as f64
        });
        let told: Vec<String> = figures
            .iter()
            .map(|(expected, _)| milliseconds(expected.told_ns))
            .collect();
        let shown: Vec<String> = figures
            .iter()
            .map(|(_, shown)| milliseconds(*shown))
            .collect();
        let cells = [
            what,
            &format!("four functions, {SECONDS} s, -m 1000"),
            &format!("{} ms", told.join(", ")),
            &format!(
                "{} ms: {:.1} standard errors off at most",
                shown.join(", "),
                worst.fold(0.0, f64::max)
            ),
            &format!("within {MAX_ERRORS} standard errors and a sample"),
            "none tells",
        ];
        let holds = |(expected, shown): &(Expected, u64)| expected.holds(*shown, MAX_ERRORS);
        table.row(&cells, Verdict::of(figures.iter().all(holds)));
    }
}
