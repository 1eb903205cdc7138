//! How many samples the CPU time of a process asks for.

use crate::account::{stolen_ns, threads_of};
use crate::output::assert_close;
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
