//! Measurements that are made again where the machine disturbed one, and a word
//! of each on stdout: `make test` tells at its end how many there were.

use std::iter::repeat_with;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::cpus_online;
use crate::truth::account::stolen_ns;

/// Begins a line on stdout that says why a measurement is made again.
pub const TRIED_AGAIN: &str = "measured again: ";

/// How often a measurement is made at most for the sake of a calm machine.
const WINDOWS: usize = 8;

/// The first of some measurements in which the machine hid no event from the
/// tool: `measure` returns none when the tool says so, or when the tool saw what was
/// hidden from the test. What the tool loses without a word is no excuse.
///
/// # Panics
///
/// When all of them were disturbed.
pub fn undisturbed<T>(mut measure: impl FnMut() -> Option<T>) -> T {
    for _ in 0..WINDOWS {
        if let Some(measured) = measure() {
            return measured;
        }
        println!("{TRIED_AGAIN}the machine hid something");
    }
    panic!("each of {WINDOWS} measurements was disturbed");
}

/// The first of some measurements in which the hypervisor took less of the
/// CPUs than 2 %, or else the one in which it took least. `measure` gives that
/// share, in parts per thousand, and the caller allows for what was taken.
pub fn least_stolen<T>(measure: impl FnMut() -> (u64, T)) -> T {
    let mut calmest: Option<(u64, T)> = None;
    for measured in repeat_with(measure).take(WINDOWS) {
        let share = measured.0;
        if calmest.as_ref().is_none_or(|(least, _)| share < *least) {
            calmest = Some(measured);
        }
        if share < 20 {
            break;
        }
        println!("{TRIED_AGAIN}the hypervisor took {share} of 1000");
    }
    calmest.expect("at least one window").1
}

/// Checks up to three times, and more often where the hypervisor took some of
/// the CPUs meanwhile: it tells so in ticks of 10 ms, so that a check to 1 % can
/// be disturbed by less than it tells, and what it takes at once can be longer
/// than all that a workload does.
///
/// # Panics
///
/// As `check` does the last time.
pub fn patiently<T>(check: impl Fn() -> T) -> T {
    const TRIES: usize = 12;
    let mut calm = 0;
    for _ in 1..TRIES {
        let (begun, stolen) = (Instant::now(), stolen_ns());
        let panic = match catch_unwind(AssertUnwindSafe(&check)) {
            Ok(checked) => return checked,
            Err(panic) => panic,
        };
        let words = panic.downcast_ref::<String>().map_or("", String::as_str);
        let why = words.lines().next().unwrap_or_default();
        let cpu_time = begun.elapsed() * u32::try_from(cpus_online()).expect("few CPUs");
        let stolen = Duration::from_nanos(stolen_ns() - stolen);
        println!("{TRIED_AGAIN}{why} ({stolen:?} of {cpu_time:?} stolen)");
        calm += usize::from(stolen * 500 < cpu_time);
        if calm == 2 {
            break;
        }
    }
    check()
}
