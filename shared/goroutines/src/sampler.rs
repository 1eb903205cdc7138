//! Thread that samples the goroutines of one process.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use process::{Process, ProcessMemory};
use symbolize::Symbolizer;

use crate::account::{Account, Counts, Sums};
use crate::program::{Error, Program};
use crate::sample::Look;

/// Thread that samples the goroutines of one process until it is stopped.
pub struct Sampler {
    stop: Sender<()>,
    thread: JoinHandle<Account>,
}

impl Sampler {
    /// Starts to sample the goroutines of process `pid`, about `rate` times a second. The time
    /// between two samples varies at random, by half of its mean, so that goroutines with a period
    /// of their own are not sampled at the same place each time.
    ///
    /// # Errors
    /// The process runs no Go program, or its goroutines cannot be read.
    pub fn start(pid: u32, rate: u32) -> Result<Sampler, Error> {
        let (stop, stopped) = channel();
        let (ready, is_ready) = channel();
        let body = move || {
            let process = Process { pid, instance: 0 };
            let mut memory = ProcessMemory::new(pid);
            let mut symbolizer = Symbolizer::new();
            let program = Program::find(process, &mut symbolizer, &memory);
            // The receiver waits for this message.
            let _ = ready.send(program.as_ref().map(|_| ()).map_err(|error| *error));
            let (mut sums, mut counts) = (Sums::default(), Counts::default());
            let Ok(program) = program else {
                return sums.finish(&mut symbolizer, &[], counts);
            };
            let mean = Duration::from_secs(1) / rate.max(1);
            let mut seed = u64::from(pid) ^ 0x9e37_79b9_7f4a_7c15;
            let mut last = Instant::now();
            loop {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                let share = 0.5 + (seed >> 11) as f64 / (1_u64 << 53) as f64;
                let pause = mean.mul_f64(share).saturating_sub(last.elapsed());
                let ends = !matches!(stopped.recv_timeout(pause), Err(RecvTimeoutError::Timeout));
                let now = Instant::now();
                let ns = now.duration_since(last).as_nanos() as u64;
                last = now;
                memory.forget();
                match program.places.look(&memory) {
                    Some(look) => {
                        let locate =
                            |addresses: &[u64], exact| symbolizer.locate(process, addresses, exact);
                        take(look, ns, &mut sums, &mut counts, locate);
                    }
                    None => counts.unread += 1,
                }
                counts.cost_ns += now.elapsed().as_nanos() as u64;
                if ends {
                    break;
                }
            }
            sums.finish(&mut symbolizer, &program.reasons, counts)
        };
        let thread = Builder::new().name("goroutines".into()).spawn(body);
        let thread = thread.map_err(|_| Error::NoThread)?;
        is_ready.recv().unwrap_or(Err(Error::NoThread))?;
        Ok(Sampler { stop, thread })
    }

    /// Takes a last sample, and returns the account; `None` if the thread has failed.
    #[must_use]
    pub fn finish(self) -> Option<Account> {
        // The thread has ended if nothing receives this.
        let _ = self.stop.send(());
        self.thread.join().ok()
    }
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
