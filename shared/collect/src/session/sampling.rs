//! One run of sampling, from a loaded object to what it counted.

use std::os::fd::OwnedFd;
use std::time::Duration;

use libbpf_rs::Link;
use loader::{
    Event, Kernel, LoadedObject, Result, Samplers, Targets, Variable, monotonic_ns, online_cpus,
    sleep_until,
};
use profile::Rate;

use crate::unwinding::MOST_DUMPS;
use crate::{Collected, Collector, Session, StackChoice};

/// An object that is attached.
pub struct SamplingSession<'a> {
    collector: Collector<'a>,
    samplers: Samplers<'a>,
    /// What follows children, and what sees newcomers.
    followers: Vec<Link>,
    /// When the last newcomer came that was told of, CLOCK_MONOTONIC, nanoseconds.
    newcomer: Variable<'a, u64>,
    /// How often to look once nobody is new.
    unhurried: Duration,
}

/// How often to look while somebody is new: a process has to live so much longer for its
/// mappings to be read.
const HURRIED: Duration = Duration::from_millis(5);
/// For how long one is that was told of: twice NEWCOMER_TOLD_NS of
/// `bpf/include/targets/newcomers.h`, nanoseconds.
const NEW_NS: u64 = 500_000_000;

impl<'a> SamplingSession<'a> {
    /// Names the targets to the programs, attaches them as [`Samplers::attach`] does, and
    /// has the unwind tables of the targets made.
    pub fn attach(
        object: &'a LoadedObject,
        kernel: &Kernel,
        targets: &Targets,
        stacks: StackChoice,
        event: Option<Event>,
        rate: Rate,
        only_cpu: Option<u32>,
    ) -> Result<Self> {
        let mut followers = targets.fill(object, kernel)?;
        // After what makes targets of them.
        if !targets.are_all_there() {
            followers.extend(object.attach(&["see_fork", "see_exec"])?);
        }
        let samplers = Samplers::attach(object, event, rate, only_cpu)?;
        let mut collector = Collector::new(object, &stacks)?;
        collector.prepare(targets)?;
        Ok(SamplingSession {
            collector,
            samplers,
            followers,
            newcomer: object.variable("newcomer_ns")?,
            unhurried: unhurried(rate, only_cpu)?,
        })
    }

    /// What takes the samples.
    pub fn samplers(&self) -> &Samplers<'a> {
        &self.samplers
    }
}

/// How often to look at processes that have been there. They may map more code: until its
/// tables are there, some looks later, each sample in it is a dump, for which there is room.
fn unhurried(rate: Rate, only_cpu: Option<u32>) -> Result<Duration> {
    const SELDOM: Duration = Duration::from_millis(50);
    const LOOKS: u32 = 8;
    let Rate::Frequency(frequency) = rate else {
        return Ok(HURRIED);
    };
    let cpus = match only_cpu {
        Some(_) => 1,
        None => online_cpus()?.len(),
    };
    let in_a_second = frequency.saturating_mul(cpus as u64).max(1);
    let room = Duration::from_secs(1) * MOST_DUMPS as u32 / LOOKS;
    let room = room.div_f64(in_a_second as f64);
    Ok(room.clamp(HURRIED, SELDOM))
}

impl Session for SamplingSession<'_> {
    fn take_interval(&self) -> Duration {
        match monotonic_ns().saturating_sub(self.newcomer.get()) < NEW_NS {
            true => HURRIED,
            false => self.unhurried,
        }
    }

    fn open_window(&mut self, start: u64, stop: Option<u64>) {
        self.collector.open_window(start, stop);
    }

    fn begin<Started>(
        &mut self,
        start: u64,
        at_start: impl FnOnce() -> Started,
    ) -> Result<Started> {
        sleep_until(start);
        let started = at_start();
        self.samplers.begin();
        Ok(started)
    }

    fn first_came(&mut self, start: u64) {
        self.collector.begin_parts(start);
    }

    fn readiness(&self) -> Result<OwnedFd> {
        self.collector.readiness()
    }

    fn take(&mut self, stop: Option<u64>) -> Result<()> {
        self.collector.take(stop)?;
        self.samplers.follow_hotplug()
    }

    fn close(self, _stop: u64) -> Result<Collected> {
        drop((self.samplers, self.followers));
        self.collector.finish()
    }
}
