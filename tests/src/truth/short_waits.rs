//! The workload `short_waits` and what it says of itself: how long it was off its CPU in
//! each function, in intervals that are nearly all shorter than a millisecond.

use crate::{Account, ClockRow, Folded, Seen, Watch, Workload, accounts_at_rest};

/// What each interval stands for that was sampled, nanoseconds: `-m`.
pub const PERIOD_NS: u64 = 1_000_000;
/// The functions in which it is asleep, and then woken.
pub const ASLEEP: [&str; 4] = ["sleep_20", "sleep_100", "sleep_300", "sleep_900"];
/// The functions in which it only waits for its CPU.
pub const PUSHED: [&str; 4] = ["pushed_5", "pushed_50", "pushed_300", "pushed_900"];

/// A run of it under a tool.
#[derive(Debug)]
pub struct Measured {
    /// What it told.
    pub workload: Workload,
    /// What offcputime saw.
    pub seen: Seen,
    /// What the kernel booked for the thread that waits.
    pub kernel: Account,
}

/// A figure, and what it can be off by.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Nanoseconds.
    pub told_ns: u64,
    /// One standard error by chance, of as many samples as it has periods.
    pub chance_ns: u64,
    /// By how much two clocks read at other places may differ.
    pub books_ns: u64,
}

/// Runs it for so many seconds under `offcputime -m 1000 --sample-short`.
pub fn measure(seconds: u64) -> Measured {
    let mut workload = Workload::start("short_waits", &[seconds]);
    let pid = workload.pid();
    let mut watch = Watch::offcputime(pid, "-m 1000 --sample-short");
    let before = accounts_at_rest(pid);
    watch.open();
    workload.go();
    workload.wait_done();
    let after = accounts_at_rest(pid);
    let seen = watch.close();
    let tid = u32::try_from(workload.told("waiter")).expect("a thread's ID");
    let kernel = after[&tid].since(before[&tid]);
    Measured {
        workload,
        seen,
        kernel,
    }
}

impl Measured {
    /// The account of the thread that waits.
    pub fn clock(&self) -> &ClockRow {
        self.seen.clock("waiter")
    }

    /// Its stacks.
    pub fn stacks(&self) -> Folded {
        self.seen.folded.of_thread(self.clock().tid)
    }

    /// How long it was off its CPU in a function.
    pub fn expected(&self, function: &str) -> Expected {
        let clock = self.clock();
        let told_ns = self.workload.told(function);
        // What the kernel books as running the clock has as waiting, in all functions.
        let off_cpu_ns = clock.blocked_ns + clock.runnable_ns;
        let by_kernel_ns = clock.lifetime_ns().saturating_sub(self.kernel.running_ns);
        let reading_ns = self.workload.told("rounds") * self.workload.told("missing");
        Expected {
            told_ns,
            chance_ns: ((told_ns * PERIOD_NS) as f64).sqrt() as u64,
            books_ns: off_cpu_ns.abs_diff(by_kernel_ns) + reading_ns,
        }
    }
}

impl Expected {
    /// Whether a figure is off by no more than so many standard errors and a sample.
    pub fn holds(&self, shown_ns: u64, errors: u64) -> bool {
        shown_ns.abs_diff(self.told_ns) <= errors * self.chance_ns + PERIOD_NS + self.books_ns
    }
}
