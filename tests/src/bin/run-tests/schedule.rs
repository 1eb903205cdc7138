//! Runs tests side by side.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;

use crate::outcome::{self, Outcome};
use crate::programs::Test;

/// Results of the finished tests.
pub(crate) struct Schedule {
    outcomes: Mutex<Vec<Outcome>>,
    /// True if no test begins after one has failed.
    until_failure: bool,
}

impl Schedule {
    pub(crate) fn new(until_failure: bool) -> Schedule {
        Schedule {
            outcomes: Mutex::default(),
            until_failure,
        }
    }

    /// Runs tests, at most `at_once` side by side, and prints each result.
    pub(crate) fn run(&self, tests: Vec<Test>, at_once: usize) {
        let waiting = Mutex::new(VecDeque::from(tests));
        let take = || {
            if self.is_over() {
                None
            } else {
                waiting.lock().unwrap().pop_front()
            }
        };
        thread::scope(|scope| {
            for _ in 0..at_once {
                scope.spawn(|| {
                    while let Some(test) = take() {
                        let outcome = outcome::run(&test);
                        print(&outcome);
                        self.outcomes.lock().unwrap().push(outcome);
                    }
                });
            }
        });
    }

    fn is_over(&self) -> bool {
        let outcomes = self.outcomes.lock().unwrap();
        self.until_failure && outcomes.iter().any(|outcome| !outcome.passed)
    }

    pub(crate) fn outcomes(self) -> Vec<Outcome> {
        self.outcomes.into_inner().unwrap()
    }
}

fn print(outcome: &Outcome) {
    let Outcome {
        name,
        passed,
        took,
        said,
        ..
    } = outcome;
    let word = if *passed { "ok    " } else { "FAILED" };
    println!("{word} {:6.2} s  {name}", took.as_secs_f64());
    if !passed {
        println!("{said}");
    }
}
