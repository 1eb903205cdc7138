//! One run of sampling, from a loaded object to what it counted.

use std::os::fd::OwnedFd;
use std::time::Duration;

use libbpf_rs::Link;
use loader::{Event, Kernel, LoadedObject, Result, Samplers, Targets, online_cpus, sleep_until};
use profile::Rate;

use crate::record::session::looks::Looks;
use crate::record::{Collected, Collector, Session, StackChoice};
use unwind_tables::MOST_DUMPS;

/// An object that is attached.
pub struct SamplingSession<'a> {
    collector: Collector<'a>,
    samplers: Samplers<'a>,
    /// What follows children.
    followers: Vec<Link>,
    looks: Looks<'a>,
}

/// How often to look after something new: a process has to live so much longer for its
/// mappings to be read.
const OFTEN: Duration = Duration::from_millis(5);

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
        let followers = targets.fill(object, kernel)?;
        let samplers = Samplers::attach(object, event, rate, only_cpu)?;
        let mut collector = Collector::new(object, &stacks)?;
        collector.prepare(targets)?;
        Ok(SamplingSession {
            collector,
            samplers,
            followers,
            looks: Looks::new(object, targets, OFTEN..seldom(rate, only_cpu)?)?,
        })
    }

    /// What takes the samples.
    pub fn samplers(&self) -> &Samplers<'a> {
        &self.samplers
    }
}

/// How often to look at processes that have been there. They may map more code: until its
/// tables are there, some looks later, each sample in it is a dump, for which there is room.
fn seldom(rate: Rate, only_cpu: Option<u32>) -> Result<Duration> {
    const LOOKS: u32 = 8;
    let Rate::Frequency(frequency) = rate else {
        return Ok(OFTEN);
    };
    let cpus = match only_cpu {
        Some(_) => 1,
        None => online_cpus()?.len(),
    };
    let in_a_second = frequency.saturating_mul(cpus as u64).max(1);
    let room = Duration::from_secs(1) * MOST_DUMPS as u32 / LOOKS;
    let room = room.div_f64(in_a_second as f64);
    Ok(room.clamp(OFTEN, Looks::SELDOM))
}

impl Session for SamplingSession<'_> {
    fn take_interval(&self) -> Duration {
        self.looks.interval()
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
        drop((self.samplers, self.followers, self.looks));
        self.collector.finish()
    }
}
