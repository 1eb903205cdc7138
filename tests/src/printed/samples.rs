//! Expected number of samples of a process. Its CPU time gives one expectation, and the sampling
//! timers that interrupted the process give another.

use crate::printed::output::assert_close;
use crate::truth::account::{stolen_ns, threads_of};
use crate::truth::tracing::Tracing;
use crate::{Account, Watch, cpus_online, now_ns};

/// A process that a tool samples.
#[derive(Debug)]
pub struct Sampled {
    pid: u32,
    watch: Watch,
    stolen_ns: u64,
    running_ns: u64,
    /// Time between the reading of the accounts and the window's start, in ns. A thread may have
    /// run for all of this time.
    unsure_ns: u64,
}

/// CPU time with which the samples of a window must agree.
#[derive(Debug)]
pub struct CpuTime {
    /// CPU time by the kernel's accounts, in ns.
    pub running_ns: u64,
    /// Maximum difference in ns between the accounts and the CPU time that a sampler can see.
    pub unsure_ns: u64,
}

/// Returns the CPU time of all threads of a process by the kernel's accounts, in ns.
pub fn running_ns(pid: u32) -> u64 {
    let threads = threads_of(pid).into_iter();
    let accounts = threads.filter_map(|tid| Account::read(pid, tid));
    accounts.map(|account| account.running_ns).sum()
}

impl Sampled {
    /// Opens the window of a tool that is attached to a process.
    pub fn open(pid: u32, mut watch: Watch) -> Sampled {
        let stolen_ns = stolen_ns();
        let (read, running_ns) = (now_ns(), running_ns(pid));
        watch.open();
        Sampled {
            unsure_ns: watch.started_ns() - read,
            pid,
            watch,
            stolen_ns,
            running_ns,
        }
    }

    /// Closes the window, and returns the tool's output and the CPU time in the window.
    pub fn close(mut self) -> (crate::Seen, CpuTime) {
        self.watch.stop();
        let running_ns = running_ns(self.pid) - self.running_ns;
        let stolen_ns = stolen_ns() - self.stolen_ns;
        let read = now_ns();
        let (seen, _) = self.watch.close_however_big();
        // The account of a running thread lags by up to a tick of 10 ms.
        let unsure_ns = self.unsure_ns + (read - seen.stopped_ns) + 20_000_000;
        let cpu_time = CpuTime {
            running_ns,
            unsure_ns: unsure_ns * cpus_online() as u64 + stolen_ns,
        };
        (seen, cpu_time)
    }
}

/// Tracing of the timers that interrupt the threads of a process.
#[derive(Debug)]
pub struct Interruptions(Tracing);

impl Interruptions {
    /// Starts tracing the current threads of a process.
    ///
    /// # Panics
    ///
    /// Panics if the kernel has no tracefs, or without root.
    pub fn watch(pid: u32) -> Interruptions {
        let events: [(&str, &[&str]); 1] = [("timer/hrtimer_expire_entry", &["common_pid"])];
        Interruptions(Tracing::start(&threads_of(pid), &events))
    }

    /// Stops tracing, and returns the number of sampling timers that interrupted a traced thread.
    /// This is the expected number of samples on any machine.
    ///
    /// # Panics
    ///
    /// Panics if there were more events than the trace buffer holds.
    pub fn stop(self) -> u64 {
        // All sampling timers call one function of kernel/events/core.c.
        let trace = self.0.stop();
        let sampling = |line: &&str| line.contains("function=perf_swevent_hrtimer");
        trace.lines().filter(sampling).count() as u64
    }
}

impl CpuTime {
    /// Asserts that the number of samples fits the CPU time.
    ///
    /// # Panics
    ///
    /// Panics if the difference is larger than the uncertainty of the CPU time plus four standard
    /// deviations of the count.
    #[track_caller]
    pub fn assert_sampled(&self, what: &str, samples: u64, hertz: u64) {
        let count = |ns: u64| ns * hertz / 1_000_000_000;
        let expected = count(self.running_ns);
        let tolerance = count(self.unsure_ns) + 4 * expected.isqrt() + 2;
        assert_close(what, samples, expected, tolerance);
    }
}
