//! Thread that samples the goroutines of one process.

use std::collections::VecDeque;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use process::{Process, ProcessMemory};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use symbolize::Symbolizer;

use crate::account::{Account, Counts, Sums};
use crate::program::{Error, Program};
use crate::sample::Look;

/// Part of a CPU that samples may take, as its reciprocal.
const COST: u32 = 50;
/// Number of the last samples of which the shortest tells the cost of a sample.
const COMPARED: usize = 8;

/// Thread that samples the goroutines of one process until it is stopped.
pub struct Sampler {
    /// Orders: the first one begins the window, and the second one ends it.
    orders: Sender<()>,
    thread: JoinHandle<Account>,
}

impl Sampler {
    /// Prepares to sample the goroutines of process `pid`, about `rate` times a second, or less often
    /// if that took more than 1/50 of a CPU. The time between two samples varies at random,
    /// by half of its mean, so that goroutines with a period of their own are not sampled at the
    /// same place each time.
    ///
    /// # Errors
    /// The process runs no Go program, or its goroutines cannot be read.
    pub fn prepare(pid: u32, rate: u32) -> Result<Sampler, Error> {
        let (orders, ordered) = channel();
        let (ready, is_ready) = channel();
        let body = move || {
            let process = Process { pid, instance: 0 };
            let memory = ProcessMemory::new(pid);
            let mut symbolizer = Symbolizer::new();
            let identity = Identity::read(pid).ok_or(Error::NotGo);
            let found = identity.and_then(|identity| {
                let program = Program::find(process, &mut symbolizer, &memory)?;
                Ok((identity, program))
            });
            // The receiver waits for this message.
            let _ = ready.send(found.as_ref().map(|_| ()).map_err(Clone::clone));
            let (mut sums, mut counts) = (Sums::default(), Counts::default());
            let Ok((identity, program)) = found else {
                return sums.finish(&mut symbolizer, &[], counts);
            };
            if ordered.recv().is_err() {
                return sums.finish(&mut symbolizer, &[], counts);
            }
            let mut pauses = Pauses::new(pid, rate);
            let mut last = Instant::now();
            let begun = last;
            let mut ends = false;
            while !ends {
                let pause = pauses.next().saturating_sub(last.elapsed());
                ends = !matches!(ordered.recv_timeout(pause), Err(RecvTimeoutError::Timeout));
                let now = Instant::now();
                let cost = Cost::begin();
                let look = program.places.look(&memory);
                // A read belongs to the process only if the process still lives after it.
                if !identity.is_same() {
                    counts.has_ended = true;
                    break;
                }
                let ns = now.duration_since(last).as_nanos() as u64;
                last = now;
                match look {
                    Some(look) => {
                        let locate =
                            |addresses: &[u64], exact| symbolizer.locate(process, addresses, exact);
                        take(look, ns, &mut sums, &mut counts, locate);
                    }
                    None => counts.unread += 1,
                }
                let cost = cost.end();
                pauses.slow_down(cost);
                counts.cost_ns += cost.as_nanos() as u64;
            }
            counts.ns = last.duration_since(begun).as_nanos() as u64;
            sums.finish(&mut symbolizer, &program.reasons, counts)
        };
        let thread = Builder::new().name("goroutines".into()).spawn(body);
        let thread = thread.map_err(|_| Error::NoThread)?;
        is_ready.recv().unwrap_or(Err(Error::NoThread))?;
        Ok(Sampler { orders, thread })
    }

    /// Begins the window.
    pub fn begin(&self) {
        self.order();
    }

    /// Ends the window with a last sample. The process may have ended before.
    pub fn end(&self) {
        self.order();
    }

    fn order(&self) {
        // The thread has ended if nothing receives this.
        let _ = self.orders.send(());
    }

    /// Returns the account, once the window has ended; `None` if the thread has failed.
    #[must_use]
    pub fn finish(self) -> Option<Account> {
        drop(self.orders);
        self.thread.join().ok()
    }
}

/// CPU time of a sample.
struct Cost {
    thread: Duration,
    helper: Option<Duration>,
}

impl Cost {
    fn begin() -> Cost {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Cost {
            thread: Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32),
            helper: process::helper_cpu_time(),
        }
    }

    /// Returns the CPU time since the begin, of this thread and of the helper that reads memory.
    fn end(self) -> Duration {
        let now = Cost::begin();
        let thread = now.thread.saturating_sub(self.thread);
        let helper = self.helper.zip(now.helper);
        // Without the helper's time it is about the thread's.
        thread + helper.map_or(thread, |(then, now)| now.saturating_sub(then))
    }
}

/// Pauses between samples.
struct Pauses {
    mean: Duration,
    /// Cost of the last samples.
    costs: VecDeque<Duration>,
    seed: u64,
}

impl Pauses {
    fn new(pid: u32, rate: u32) -> Pauses {
        Pauses {
            mean: Duration::from_secs(1) / rate.max(1),
            costs: VecDeque::new(),
            seed: u64::from(pid) ^ 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Makes the next pauses so long that samples of this cost take 1/[`COST`] of a CPU.
    fn slow_down(&mut self, cost: Duration) {
        self.costs.push_front(cost);
        self.costs.truncate(COMPARED);
    }

    fn next(&mut self) -> Duration {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        let share = 0.5 + (self.seed >> 11) as f64 / (1_u64 << 53) as f64;
        // The first sample with a stack also looks up its files, which no later sample does.
        let least = self.costs.iter().min().copied().unwrap_or_default();
        self.mean.max(least * COST).mul_f64(share)
    }
}

/// Identity of a process and of its program.
struct Identity {
    pid: u32,
    handle: OwnedFd,
    program: (u64, u64),
}

impl Identity {
    fn read(pid: u32) -> Option<Identity> {
        let id = Pid::from_raw(pid.cast_signed())?;
        Some(Identity {
            pid,
            handle: pidfd_open(id, PidfdFlags::empty()).ok()?,
            program: program(pid)?,
        })
    }

    /// Returns whether the process lives, and executes the same program.
    fn is_same(&self) -> bool {
        let mut handles = [PollFd::new(&self.handle, PollFlags::IN)];
        let lives = poll(&mut handles, Some(&Timespec::default())) == Ok(0);
        lives && program(self.pid).is_none_or(|program| program == self.program)
    }
}

/// Returns the device and the inode of the program that a process executes.
fn program(pid: u32) -> Option<(u64, u64)> {
    let metadata = fs::metadata(format!("/proc/{pid}/exe")).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Adds one look, which stands for `ns`.
fn take(
    look: Look,
    ns: u64,
    sums: &mut Sums,
    counts: &mut Counts,
    mut locate: impl FnMut(&[u64], bool) -> Vec<symbolize::Location>,
) {
    counts.samples += 1;
    counts.most = counts.most.max(look.stopped.len() as u64 + look.on_threads);
    counts.invalid += look.invalid;
    counts.beyond += look.beyond;
    for stopped in look.stopped {
        if stopped.chain.addresses.is_empty() {
            counts.changed += 1;
        }
        if !sums.add(stopped, ns, &mut locate) {
            counts.beyond += 1;
        }
    }
}
