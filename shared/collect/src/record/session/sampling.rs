//! Session of an object that samples, from the loaded object to its counts.

use std::os::fd::OwnedFd;
use std::time::Duration;

use libbpf_rs::Link;
use loader::{Event, Kernel, LoadedObject, Result, Samplers, Targets, online_cpus, sleep_until};
use profile::Rate;

use crate::record::session::pace::Pace;
use crate::record::{Collected, Collector, RowSink, Session, StackChoice};
use unwind_tables::MAX_DUMPS;

/// Attached object that samples.
pub struct SamplingSession<'a> {
    collector: Collector<'a>,
    samplers: Samplers<'a>,
    /// Links of the programs that follow children.
    followers: Vec<Link>,
    pace: Pace<'a>,
    /// Start of the window, in ns of CLOCK_MONOTONIC.
    start: u64,
}

/// Interval between takes for a while after news. User space reads the mappings of a process only
/// if the process lives longer than this.
const OFTEN: Duration = Duration::from_millis(5);

impl<'a> SamplingSession<'a> {
    /// Writes the targets, attaches the programs as [`Samplers::attach`] does, and builds the
    /// unwind tables of the targets.
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
            pace: Pace::new(object, targets, OFTEN..seldom(rate, only_cpu)?)?,
            start: 0,
        })
    }

    /// Returns the sampling events on the CPUs.
    pub fn samplers(&self) -> &Samplers<'a> {
        &self.samplers
    }
}

/// Returns the interval between takes without news. When a process maps more code, user space
/// builds the tables a few takes later. Until then, each sample in that code is a dump and uses
/// capacity.
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
    let room = Duration::from_secs(1) * MAX_DUMPS as u32 / LOOKS;
    let room = room.div_f64(in_a_second as f64);
    Ok(room.clamp(OFTEN, Pace::SELDOM))
}

impl Session for SamplingSession<'_> {
    fn take_interval(&self) -> Duration {
        self.pace.interval()
    }

    fn open_window(&mut self, start: u64, stop: Option<u64>) {
        self.start = start;
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

    fn note_first_target(&mut self, start: u64) {
        self.start = start;
        self.collector.begin_parts(start);
    }

    fn readiness(&self) -> Result<OwnedFd> {
        self.collector.readiness()
    }

    fn take(&mut self, stop: Option<u64>) -> Result<()> {
        self.collector.take(stop)?;
        self.samplers.follow_hotplug()
    }

    fn stream_timeline(&mut self, sink: RowSink) {
        self.collector.stream_timeline(sink);
    }

    fn with_collector(&mut self, body: &mut dyn FnMut(&mut Collector<'_>)) {
        body(&mut self.collector);
    }

    fn close(self, stop: u64) -> Result<Collected> {
        drop((self.samplers, self.followers, self.pace));
        let mut collected = self.collector.finish()?;
        collected.keep_recorded(self.start..stop);
        Ok(collected)
    }
}
