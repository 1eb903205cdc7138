//! The workload `short_waits` and its reports: its time off the CPU in each function. Nearly all
//! intervals are shorter than a millisecond.

use crate::{Account, ClockRow, Folded, Seen, Watch, Workload, accounts_at_rest};

/// Time that a sampled interval stands for in ns. It is the value of `-m`.
pub const PERIOD_NS: u64 = 1_000_000;
/// Functions in which the workload sleeps until a timer wakes it.
pub const ASLEEP: [&str; 4] = ["sleep_20", "sleep_100", "sleep_300", "sleep_900"];
/// Functions in which the workload only waits for its CPU.
pub const PUSHED: [&str; 4] = ["pushed_5", "pushed_50", "pushed_300", "pushed_900"];

/// Run of the workload under offcputime.
#[derive(Debug)]
pub struct Measured {
    /// Workload with its reports.
    pub workload: Workload,
    /// Results of offcputime.
    pub seen: Seen,
    /// Kernel's account of the workload's waiting thread.
    pub kernel: Account,
}

/// Expected value with its uncertainties.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Value that the workload reports, in ns.
    pub told_ns: u64,
    /// Standard error by chance in ns, for one sample in each [`PERIOD_NS`].
    pub chance_ns: u64,
    /// Largest difference in ns between two clocks that are read at different places.
    pub books_ns: u64,
}

/// Runs the workload for some seconds under `offcputime -m 1000 --sample-short`.
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
    /// Returns the thread clock's account of the waiting thread.
    pub fn clock(&self) -> &ClockRow {
        self.seen.clock("waiter")
    }

    /// Returns the stacks of the waiting thread.
    pub fn stacks(&self) -> Folded {
        self.seen.folded.of_thread(self.clock().tid)
    }

    /// Returns the expected time off the CPU in a function.
    pub fn expected(&self, function: &str) -> Expected {
        let clock = self.clock();
        let told_ns = self.workload.told(function);
        // This difference is of all functions together: the kernel counts this time as running, and
        // the thread clock counts it as waiting.
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
    /// Returns whether a value is off by at most `errors` standard errors, one sample and the
    /// difference between the clocks.
    pub fn holds(&self, shown_ns: u64, errors: u64) -> bool {
        shown_ns.abs_diff(self.told_ns) <= errors * self.chance_ns + PERIOD_NS + self.books_ns
    }
}
