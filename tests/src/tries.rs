//! Measurements that are repeated because the machine disturbed one of them. Each repetition prints
//! a line on stdout, and `make test` prints the number of these lines at its end.

use std::iter::repeat_with;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::cpus_online;
use crate::truth::account::stolen_ns;

/// Start of a line on stdout that says why a measurement is repeated.
pub const TRIED_AGAIN: &str = "measured again: ";

/// Maximum number of measurements until the machine must be calm.
const WINDOWS: usize = 8;

/// Returns the first measurement in which the machine hid no event from the tool. `measure` returns
/// `None` if the tool reports hidden events, or if the tool saw an event that was hidden from the
/// test. Losses that the tool does not report are no excuse.
///
/// # Panics
///
/// Panics if every measurement was disturbed.
pub fn undisturbed<T>(mut measure: impl FnMut() -> Option<T>) -> T {
    for _ in 0..WINDOWS {
        if let Some(measured) = measure() {
            return measured;
        }
        println!("{TRIED_AGAIN}the machine hid something");
    }
    panic!("each of {WINDOWS} measurements was disturbed");
}

/// Returns the first measurement in which the hypervisor took less than 2 % of the CPUs' time. If
/// there is none, returns the measurement in which it took least. `measure` returns that share in
/// thousandths, and the caller allows for it.
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

/// Calls `check` up to three times, and more often if the hypervisor took CPU time meanwhile. The
/// kernel reports stolen time in ticks of 10 ms, so less than a tick can disturb a check to 1 %. A
/// single theft can be longer than the whole run of a workload.
///
/// # Panics
///
/// Panics if the last call of `check` panics.
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
