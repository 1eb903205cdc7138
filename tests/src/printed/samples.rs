//! How many samples a process asks for: by its CPU time, and by the timers that
//! the kernel says interrupted it.

use crate::printed::output::assert_close;
use crate::truth::account::{stolen_ns, threads_of};
use crate::truth::tracing::Tracing;
use crate::{Account, Watch, cpus_online, now_ns};

/// A process under a tool that samples it.
#[derive(Debug)]
pub struct Sampled {
    pid: u32,
    watch: Watch,
    stolen_ns: u64,
    running_ns: u64,
    /// How long what is running may have run between a reading of its account
    /// and the window's edge.
    unsure_ns: u64,
}

/// What the samples of a window must agree with.
#[derive(Debug)]
pub struct CpuTime {
    /// What the kernel booked.
    pub running_ns: u64,
    /// How far that may be from what a sampler can see.
    pub unsure_ns: u64,
}

/// The CPU time that the kernel has booked for all threads of a process.
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

    /// Closes it: what was seen, and the CPU time in it.
    pub fn close(mut self) -> (crate::Seen, CpuTime) {
        self.watch.stop();
        let running_ns = running_ns(self.pid) - self.running_ns;
        let stolen_ns = stolen_ns() - self.stolen_ns;
        let read = now_ns();
        let (seen, _) = self.watch.close_however_big();
        // The account of a thread that runs lags by up to a tick of 10 ms.
        let unsure_ns = self.unsure_ns + (read - seen.stopped_ns) + 20_000_000;
        let cpu_time = CpuTime {
            running_ns,
            unsure_ns: unsure_ns * cpus_online() as u64 + stolen_ns,
        };
        (seen, cpu_time)
    }
}

/// Tracing of the timers that interrupt the threads that a process has.
#[derive(Debug)]
pub struct Interruptions(Tracing);

impl Interruptions {
    /// Watches the threads that a process has now.
    ///
    /// # Panics
    ///
    /// On a kernel without tracefs, or without root.
    pub fn watch(pid: u32) -> Interruptions {
        let events: [(&str, &[&str]); 1] = [("timer/hrtimer_expire_entry", &["common_pid"])];
        Interruptions(Tracing::start(&threads_of(pid), &events))
    }

    /// How often since a sampling timer found such a thread on its CPU: how many
    /// samples there are to be, on whatever machine.
    ///
    /// # Panics
    ///
    /// When there were more events than find room.
    pub fn stop(self) -> u64 {
        // kernel/events/core.c has one function for all timers that sample.
        let trace = self.0.stop();
        let sampling = |line: &&str| line.contains("function=perf_swevent_hrtimer");
        trace.lines().filter(sampling).count() as u64
    }
}

impl CpuTime {
    /// # Panics
    ///
    /// When samples are not as many as so much CPU time asks for, but for four
    /// times the usual spread of a count.
    #[track_caller]
    pub fn assert_sampled(&self, what: &str, samples: u64, hertz: u64) {
        let count = |ns: u64| ns * hertz / 1_000_000_000;
        let expected = count(self.running_ns);
        let tolerance = count(self.unsure_ns) + 4 * expected.isqrt() + 2;
        assert_close(what, samples, expected, tolerance);
    }
}
