//! Many tests, some at a time.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;

use crate::outcome::{self, Outcome};
use crate::programs::Test;

/// Runs tests, at most `at_once` side by side, and tells of each as it ends.
pub(crate) fn run(tests: Vec<Test>, at_once: usize) -> Vec<Outcome> {
    let waiting = Mutex::new(VecDeque::from(tests));
    let ended = Mutex::new(Vec::new());
    let take = || waiting.lock().unwrap().pop_front();
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(test) = take() {
                    let outcome = outcome::of(&test);
                    tell(&outcome);
                    ended.lock().unwrap().push(outcome);
                }
            });
        }
    });
    ended.into_inner().unwrap()
}

fn tell(outcome: &Outcome) {
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
