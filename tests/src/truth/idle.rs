//! Idle time of the CPUs from `/proc/stat`, between any two times that a test watched.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

use crate::now_ns;

/// Interval between two readings.
const PAUSE: Duration = Duration::from_millis(5);

/// Thread that reads the idle time of the CPUs until [`IdleWatch::finish`].
#[derive(Debug)]
pub struct IdleWatch {
    over: Arc<AtomicBool>,
    looks: JoinHandle<Vec<Look>>,
}

/// Idle time of all CPUs since boot in ns, with the time of reading.
#[derive(Clone, Copy, Debug)]
struct Look {
    at_ns: u64,
    idle_ns: u64,
}

/// Readings of the idle time.
#[derive(Debug)]
pub struct Idle(Vec<Look>);

impl IdleWatch {
    /// Starts to read the idle time.
    pub fn start() -> IdleWatch {
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let mut looks = vec![look()];
        let looks = thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                sleep(PAUSE);
                looks.push(look());
            }
            looks
        });
        IdleWatch { over, looks }
    }

    /// Stops, and returns all readings.
    pub fn finish(self) -> Idle {
        self.over.store(true, Ordering::Relaxed);
        Idle(self.looks.join().expect("looks at the CPUs"))
    }
}

impl Idle {
    /// Returns the idle time of all CPUs between two CLOCK_MONOTONIC times, in ns.
    ///
    /// # Panics
    ///
    /// Panics if the readings do not cover these times.
    pub fn between(&self, start: u64, end: u64) -> u64 {
        self.until(end) - self.until(start)
    }

    /// Returns the idle time until `time`, interpolated between two readings.
    fn until(&self, time: u64) -> u64 {
        let after = self.0.partition_point(|look| look.at_ns < time);
        let (Some(before), Some(after)) = (self.0[..after].last(), self.0.get(after)) else {
            panic!("{time} was not watched");
        };
        let (span, idle) = (after.at_ns - before.at_ns, after.idle_ns - before.idle_ns);
        before.idle_ns + idle * (time - before.at_ns) / span.max(1)
    }
}

/// Reads the first line of `/proc/stat`: field 4 is idle time, field 5 waiting for I/O.
fn look() -> Look {
    let stat = fs::read_to_string("/proc/stat").expect("read /proc/stat");
    let ticks = |field: usize| -> u64 {
        let word = stat.split_ascii_whitespace().nth(field);
        word.expect("a column of /proc/stat").parse().unwrap()
    };
    Look {
        at_ns: now_ns(),
        idle_ns: (ticks(4) + ticks(5)) * 1_000_000_000 / rustix::param::clock_ticks_per_second(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_two_looks_is_shared_out() {
        let look = |at_ns, idle_ns| Look { at_ns, idle_ns };
        let idle = Idle(vec![look(100, 50), look(200, 70), look(400, 70)]);
        assert_eq!(idle.between(150, 250), 10);
        assert_eq!(idle.between(101, 200), 20);
        assert_eq!(idle.between(250, 350), 0);
    }

    #[test]
    fn a_span_is_watched() {
        let watch = IdleWatch::start();
        let begun = now_ns();
        sleep(Duration::from_millis(100));
        let end = now_ns();
        sleep(Duration::from_millis(50));
        let idle = watch.finish().between(begun, end);
        let cpus = crate::cpus_online() as u64;
        assert!(idle <= cpus * 130_000_000, "{idle}");
    }
}
