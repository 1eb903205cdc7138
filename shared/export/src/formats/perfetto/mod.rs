//! Perfetto's traces, for <https://ui.perfetto.dev> and its `trace_processor`.
//!
//! A file has a timeline in three forms, since Perfetto has no single one for all of it:
//!
//! - `ftrace`: switches and wake-ups of the scheduler, from which Perfetto derives the states of
//!   threads, their wakers and the critical path. They are reconstructed from the intervals: see
//!   `docs/guide/formats.md`.
//! - `slices`: blocked, runnable and mixed intervals on the threads' tracks, with stacks, what the
//!   threads waited for, and flows from wakers.
//! - `samples`: samples of CPUs with stacks and weights.

mod ftrace;
mod interning;
mod lanes;
mod messages;
mod packets;
mod samples;
mod slices;
mod tracks;

use std::io::{self, Write};

use profile::Profile;

use self::ftrace::Switches;
use self::interning::Interner;
use self::lanes::{Lane, Wakes};
use self::messages::{
    Clock, ClockSnapshot, StackSampleDefaults, SystemInfo, TracePacket, TracePacketDefaults,
    Utsname,
};
use self::packets::{Packets, time};
use self::slices::Slices;
use self::tracks::{Threads, Uuids};
use crate::format::{Format, Needs};
use crate::lanes::Lanes;
use crate::text::options::{Options, Written};

/// Perfetto's numbers of clocks (`BuiltinClock`).
const REALTIME: u32 = 1;
const MONOTONIC: u32 = 3;
const BOOTTIME: u32 = 6;

/// In place of a release of Linux that is not known: Perfetto reads states as those of an older
/// kernel if it finds no release, and all that has BPF's features is later.
const SOME_RELEASE: &str = "5.4.0-unknown";

/// The Perfetto format.
pub struct Perfetto;

impl Format for Perfetto {
    fn name(&self) -> &'static str {
        "perfetto"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".pftrace", ".perfetto-trace"]
    }

    fn readers(&self) -> &'static str {
        "[Perfetto](https://ui.perfetto.dev): the timeline, with states, waits, wakers and stacks"
    }

    fn needs(&self) -> Needs {
        Needs {
            times: true,
            threads: true,
            processes: true,
            reasons: true,
            wakers: true,
            addresses: true,
            ..Needs::NAMES
        }
    }

    fn is_binary(&self) -> bool {
        true
    }

    fn write(
        &self,
        profile: &Profile,
        _options: &Options,
        writer: &mut dyn Write,
    ) -> io::Result<Written> {
        let mut packets = Packets::new(writer);
        let mut interner = Interner::new(profile);
        let lanes = Lanes::new(profile);
        let threads = Threads::new(profile, &lanes);
        let mut uuids = Uuids::new(&threads);
        write_head(profile, &mut packets)?;
        threads.write(profile, &mut uuids, &mut packets)?;
        let mut slices = Slices::new(profile, &threads);
        slices.write_window(&mut interner, &mut packets)?;
        let mut switches = Switches::new(profile, &threads);
        let wakes = Wakes::new(profile, &threads);
        for &id in lanes.threads() {
            for event in lanes.events(id) {
                slices.write_event(event, &mut interner, &mut packets)?;
            }
            for span in lanes.requests(id) {
                slices.write_request(span, &mut uuids, &mut interner, &mut packets)?;
            }
            if let Some(thread) = threads.place(id) {
                let lane = Lane::new(&lanes, &wakes, id, thread);
                slices.write(&lane, &mut interner, &mut packets)?;
                switches.add(&lane);
            }
        }
        drop((lanes, wakes));
        switches.write(&mut packets)?;
        samples::write(profile, &mut interner, &mut packets)?;
        packets.finish()?;
        Ok(Written::default())
    }
}

/// Writes the clocks, the machine and what holds for all packets.
fn write_head(profile: &Profile, packets: &mut Packets) -> io::Result<()> {
    let meta = &profile.meta;
    let window = &meta.window;
    let clock = |clock_id, ns| Clock {
        clock_id,
        timestamp: Some(time(ns)),
    };
    // Switches and wake-ups are in CLOCK_BOOTTIME for Perfetto, which here equals CLOCK_MONOTONIC.
    let mut clocks = vec![
        clock(MONOTONIC, window.start_ns),
        clock(BOOTTIME, window.start_ns),
    ];
    if window.start_utc_ns > 0 {
        clocks.push(clock(REALTIME, window.start_utc_ns));
    }
    packets.put_alone(&TracePacket {
        clock_snapshot: Some(ClockSnapshot {
            clocks,
            primary_trace_clock: MONOTONIC,
        }),
        ..TracePacket::default()
    })?;
    let release = if has_states_of_today(&meta.kernel) {
        &*meta.kernel
    } else {
        SOME_RELEASE
    };
    packets.put_alone(&TracePacket {
        system_info: Some(SystemInfo {
            utsname: Some(Utsname {
                sysname: "Linux".to_owned(),
                release: release.to_owned(),
            }),
            num_cpus: (meta.cpus > 0).then_some(meta.cpus),
            machine_name: (!meta.host.is_empty()).then(|| meta.host.to_string()),
        }),
        ..TracePacket::default()
    })?;
    packets.put(TracePacket {
        trace_packet_defaults: Some(TracePacketDefaults {
            timestamp_clock_id: MONOTONIC,
            stack_sample_defaults: Some(StackSampleDefaults {
                source: "systemscope".to_owned(),
            }),
        }),
        ..TracePacket::default()
    })
}

/// Returns whether Perfetto reads the states of this release as `ftrace` writes them.
fn has_states_of_today(release: &str) -> bool {
    let mut numbers = release.split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (4, 14),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
