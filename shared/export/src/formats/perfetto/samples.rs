//! Stack samples with their weights.

use std::io;

use profile::{Profile, Sample};

use super::ftrace::cpus::MAX_REAL_CPUS;
use super::interning::Interner;
use super::messages::{StackSample, TracePacket};
use super::packets::{Packets, time};
use crate::measure::{Measure, implied_state, state_name};

/// Writes each timed sample with its part of the weight. Without a timeline, it writes each sample
/// of the profile with its whole weight, at the start of the window.
pub(super) fn write<'a>(
    profile: &'a Profile,
    interner: &mut Interner<'a>,
    packets: &mut Packets,
) -> io::Result<()> {
    let mut samples = Samples {
        profile,
        measure: Measure::new(profile),
        interner,
        packets,
    };
    if profile.times.is_empty() {
        samples.write_sums()
    } else {
        samples.write_timed()
    }
}

struct Samples<'a, 'b, 'c> {
    profile: &'a Profile,
    measure: Measure,
    interner: &'b mut Interner<'a>,
    packets: &'b mut Packets<'c>,
}

impl Samples<'_, '_, '_> {
    fn write_sums(&mut self) -> io::Result<()> {
        let profile = self.profile;
        let start_ns = profile.meta.window.start_ns;
        for (sample, value) in profile.values() {
            let weight = self.measure.convert(value);
            self.put(&sample, None, start_ns, weight)?;
        }
        Ok(())
    }

    fn write_timed(&mut self) -> io::Result<()> {
        let profile = self.profile;
        let timed = &profile.times.timed_samples;
        if timed.is_empty() {
            return Ok(());
        }
        // Numbers of the rows of each sample: all, and those that are written.
        let mut rows = vec![[0_u32; 2]; profile.samples.len()];
        for timed in timed {
            if let Some([all, _]) = rows.get_mut(timed.sample.index()) {
                *all = all.saturating_add(1);
            }
        }
        for timed in timed {
            let Some((sample, weight)) = profile.samples.row(timed.sample) else {
                continue;
            };
            let [all, written] = &mut rows[timed.sample.index()];
            // Events whose rows are lost keep their parts.
            let parts = u128::from(weight.events.max(u64::from(*all)));
            let value = u128::from(self.measure.convert(weight.value));
            let sum = |rows: u32| value * u128::from(rows) / parts;
            let part = sum(*written + 1) - sum(*written);
            *written += 1;
            let part = u64::try_from(part).unwrap_or(u64::MAX);
            self.put(sample, Some(timed.cpu), timed.time_ns, part)?;
        }
        Ok(())
    }

    fn put(
        &mut self,
        sample: &Sample,
        cpu: Option<u32>,
        time_ns: u64,
        weight: u64,
    ) -> io::Result<()> {
        let state = sample.state.or(implied_state(self.profile));
        let (name, unit) = match &self.measure {
            Measure::Time(_) => (state.map_or("time", state_name), None),
            Measure::Events(name, _) => (&**name, Some(&**name)),
        };
        let cpu = cpu.filter(|cpu| *cpu < MAX_REAL_CPUS);
        let stack_sample = StackSample {
            task_context_iid: sample.thread.map(|thread| self.interner.thread(thread)),
            execution_context_iid: cpu.map(|cpu| self.interner.cpu(cpu)),
            callstack_iid: self.interner.stack(sample.stack),
            primary_descriptor_iid: Some(self.interner.counter(name, unit)),
            primary_weight: Some(weight.min(i64::MAX as u64)),
        };
        self.packets.put(TracePacket {
            timestamp: Some(time(time_ns)),
            interned_data: self.interner.take(),
            stack_sample: Some(stack_sample),
            ..TracePacket::default()
        })
    }
}
