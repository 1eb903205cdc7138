//! Flags, sampling and output of goroutines, beside the account of threads.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use export::Options;
use export::folded::Folded;
use goroutines::{Account, Sampler};
use profile::{Meta, Profile, Unit};

use crate::error::say;
use crate::{Destinations, Planned, TargetFlags, pair, usage};

/// Maximum number of samples a second.
const MAX_RATE: u64 = 1000;

/// Flags about goroutines.
#[derive(Args, Clone, Debug)]
pub struct GoroutineFlags {
    /// Also write the time of waiting goroutines to FILE; its ending chooses the format
    ///
    /// The program must be written in Go, and chosen with -p. Its list of goroutines is read from
    /// its memory, several times a second, while it runs. The file is an account of its own.
    #[arg(long = "goroutines", value_name = "FILE", help_heading = "Go")]
    pub(crate) file: Option<PathBuf>,

    /// Samples of goroutines a second
    ///
    /// There are fewer if they would take more than 2 % of a CPU.
    #[arg(
        long = "goroutine-rate",
        value_name = "HZ",
        default_value = "10",
        requires = "file",
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=MAX_RATE),
        help_heading = "Go"
    )]
    pub(crate) rate: u32,
}

impl GoroutineFlags {
    /// Checks the flags and the destination; `None` if goroutines are not requested. `others` are
    /// the other outputs of the tool.
    ///
    /// # Errors
    /// A usage error if the flags contradict others. Another error if FILE cannot be written.
    pub(crate) fn plan(
        &self,
        tool: &'static str,
        target: &TargetFlags,
        records: bool,
        others: &[Planned],
    ) -> anyhow::Result<Option<Goroutines>> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        if target.pids().is_empty() {
            return Err(usage(
                "--goroutines reads the memory of a process: choose it with -p PID",
            ));
        }
        if records {
            return Err(usage(
                "--goroutines keeps no last part of a window: leave out --last",
            ));
        }
        let plan = pair(&[], std::slice::from_ref(file), &Folded)?;
        // The check that two outputs are not the same file needs all of them.
        drop(Destinations::new(
            others.iter().chain(&plan).cloned().collect(),
        )?);
        Ok(Some(Goroutines {
            tool,
            pids: target.pids(),
            rate: self.rate,
            destinations: Destinations::new(plan)?,
            sampled: Vec::new(),
        }))
    }
}

/// Process, and the name that it has at the start of the window.
struct Named {
    pid: u32,
    name: String,
}

impl Named {
    fn new(pid: u32) -> Named {
        let name = fs::read_to_string(format!("/proc/{pid}/comm"));
        let name = name.map_or_else(|_| format!("{pid}"), |name| name.trim_end().to_owned());
        Named { pid, name }
    }
}

/// Goroutines of the chosen processes.
pub struct Goroutines {
    tool: &'static str,
    pids: Vec<u32>,
    rate: u32,
    destinations: Destinations,
    sampled: Vec<(Named, Account)>,
}

/// Samplers of the chosen processes.
pub(crate) struct Sampling<'a> {
    goroutines: &'a mut Goroutines,
    samplers: Vec<(Named, Sampler)>,
}

impl Goroutines {
    /// Prepares to sample the goroutines of each process. A process whose goroutines cannot be read
    /// is reported and left out.
    ///
    /// # Errors
    /// No process has goroutines that can be read.
    pub(crate) fn prepare(&mut self) -> anyhow::Result<Sampling<'_>> {
        let mut samplers = Vec::new();
        for &pid in &self.pids {
            match Sampler::prepare(pid, self.rate) {
                Ok(sampler) => samplers.push((Named::new(pid), sampler)),
                Err(error) if self.pids.len() == 1 => {
                    return Err(anyhow::anyhow!(
                        "cannot read the goroutines of process {pid}: {error}"
                    ));
                }
                Err(error) => say(format_args!(
                    "{}: no goroutines of process {pid}: {error}",
                    self.tool
                )),
            }
        }
        if samplers.is_empty() {
            return Err(anyhow::anyhow!(
                "no process has goroutines that can be read"
            ));
        }
        Ok(Sampling {
            goroutines: self,
            samplers,
        })
    }

    /// Writes the profile of the goroutines.
    ///
    /// # Errors
    /// The destination cannot be written.
    pub(crate) fn write(self, meta: &Meta, options: &Options) -> anyhow::Result<()> {
        let mut profile = Profile::new(Unit::Nanoseconds);
        profile.meta = Meta {
            lengths: None,
            bursts: Vec::new(),
            timeline_least_ns: None,
            ..meta.clone()
        };
        for (Named { pid, name }, account) in &self.sampled {
            account.add_to(&mut profile, name);
            say(format_args!(
                "{}: goroutines of process {pid}: {}",
                self.tool, account.counts
            ));
        }
        self.destinations.write(&profile, options)?;
        Ok(())
    }
}

impl Sampling<'_> {
    /// Begins the window.
    pub(crate) fn begin(&self) {
        self.samplers
            .iter()
            .for_each(|(_, sampler)| sampler.begin());
    }

    /// Takes a last sample of each process, and keeps the accounts.
    pub(crate) fn finish(self) {
        for (named, sampler) in self.samplers {
            sampler.end();
            match sampler.finish() {
                Some(account) => self.goroutines.sampled.push((named, account)),
                None => say(format_args!(
                    "{}: the samples of the goroutines of process {} are lost",
                    self.goroutines.tool, named.pid
                )),
            }
        }
    }
}
