//! Goroutines of the targets that are Go programs.

use std::time::Duration;

use goroutines::{Account, Error, Line, Sampler};
use profile::State;
use report::{GoroutineWait, Goroutines};

/// Samples the goroutines of some processes.
pub(crate) struct GoroutineRecorder {
    samplers: Vec<(u32, Sampler)>,
    /// Commands that have not executed their programs yet, and how often they have been tried.
    commands: Vec<u32>,
    tries: u32,
    rate: u32,
    has_begun: bool,
    has_ended: bool,
}

impl GoroutineRecorder {
    /// Time between two tries to read the goroutines of a command that has just started.
    const PATIENCE: Duration = Duration::from_millis(200);
    /// Number of these tries.
    const TRIES: u32 = 5;

    /// Prepares to sample at `rate` samples a second. Leaves out processes that are no Go programs,
    /// and reports Go programs whose goroutines cannot be read. Commands do not execute their
    /// programs yet.
    pub(crate) fn prepare(pids: &[u32], are_commands: bool, rate: u32) -> GoroutineRecorder {
        let mut recorder = GoroutineRecorder {
            samplers: Vec::new(),
            commands: Vec::new(),
            tries: 0,
            rate,
            has_begun: false,
            has_ended: false,
        };
        if are_commands {
            recorder.commands = pids.to_vec();
        } else {
            pids.iter().for_each(|pid| recorder.add(*pid, true));
        }
        recorder
    }

    /// Prepares to sample a process. `is_last` says that there is no later try.
    fn add(&mut self, pid: u32, is_last: bool) {
        match Sampler::prepare(pid, self.rate) {
            Ok(sampler) => {
                if self.has_begun {
                    sampler.begin();
                }
                self.commands.retain(|command| *command != pid);
                self.samplers.push((pid, sampler));
            }
            Err(Error::NotGo) => {}
            Err(error) if is_last => cli::say(format_args!(
                "wallclock: the report has no goroutines of process {pid}: {error}"
            )),
            Err(_) => {}
        }
    }

    /// Tries to read the goroutines of commands that have started. Returns the time until the next
    /// try, if there is one.
    pub(crate) fn find_commands(&mut self) -> Option<Duration> {
        if !self.has_begun || self.has_ended || self.tries >= GoroutineRecorder::TRIES {
            return None;
        }
        self.tries += 1;
        let is_last = self.tries == GoroutineRecorder::TRIES;
        for pid in self.commands.clone() {
            self.add(pid, is_last);
        }
        (!self.commands.is_empty() && !is_last).then_some(GoroutineRecorder::PATIENCE)
    }

    /// Begins the window.
    pub(crate) fn begin(&mut self) {
        if !self.has_begun {
            self.has_begun = true;
            self.samplers.iter().for_each(|(_, it)| it.begin());
        }
    }

    /// Ends the window.
    pub(crate) fn end(&mut self) {
        if self.has_begun && !self.has_ended {
            self.has_ended = true;
            self.samplers.iter().for_each(|(_, it)| it.end());
        }
    }

    /// Returns the goroutines of each process that was sampled.
    pub(crate) fn finish(mut self) -> Vec<Goroutines> {
        self.end();
        let finish = |(pid, sampler): (u32, Sampler)| {
            let account = sampler.finish()?;
            (account.counts.samples > 0).then(|| goroutines(pid, account))
        };
        self.samplers.into_iter().filter_map(finish).collect()
    }
}

fn goroutines(pid: u32, account: Account) -> Goroutines {
    let counts = account.counts;
    let (waiting, runnable): (Vec<Line>, Vec<Line>) =
        { account.lines.into_iter() }.partition(|line| line.state == State::Blocked);
    let wait = |line: Line| GoroutineWait {
        ns: line.ns(),
        reason: line.reason.unwrap_or_default(),
        functions: line.frames.into_iter().rev().collect(),
        creator: line.creator,
    };
    Goroutines {
        pid,
        samples: counts.samples,
        measured_ns: counts.ns,
        most: counts.most,
        system: (counts.system_number(), counts.system_ns),
        runnable_ns: runnable.iter().map(Line::ns).sum(),
        waits: waiting.into_iter().map(wait).collect(),
        losses: counts.losses(),
    }
}
