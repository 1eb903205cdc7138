//! Report at the end of a run.

use std::process::ExitCode;

use systemscope_tests::machine;

use crate::outcome::Outcome;

const SLOWEST: usize = 10;

/// Prints the machine, the slowest tests, the repeated measurements, the failed tests and the
/// counts. Returns failure if a test failed, or if there was none.
pub(crate) fn print(outcomes: &[Outcome]) -> ExitCode {
    println!("\nOn {}", machine::line());

    println!("\nThe slowest tests:");
    let mut slowest: Vec<&Outcome> = outcomes.iter().collect();
    slowest.sort_by_key(|outcome| std::cmp::Reverse(outcome.took));
    for outcome in slowest.iter().take(SLOWEST) {
        println!("  {:6.2} s  {}", outcome.took.as_secs_f64(), outcome.name);
    }

    let again = outcomes.iter().map(|outcome| outcome.tried_again.len());
    println!("\nMeasurements made again: {}", again.sum::<usize>());
    for outcome in outcomes {
        for why in &outcome.tried_again {
            println!("  {}: {why}", outcome.name);
        }
    }

    let failed: Vec<&Outcome> = outcomes.iter().filter(|outcome| !outcome.passed).collect();
    if !failed.is_empty() {
        println!("\nFailed, with what it said above:");
    }
    for outcome in &failed {
        println!("  {}", outcome.name);
    }
    println!(
        "\n{} passed, {} failed",
        outcomes.len() - failed.len(),
        failed.len()
    );
    if failed.is_empty() && !outcomes.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
