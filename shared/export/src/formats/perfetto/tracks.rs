//! Threads and processes, and the track of each.

use std::collections::BTreeMap;
use std::io;

use profile::{Name, Process, Profile, ThreadChange, ThreadId, marker};
use prost::bytes::Bytes;

use super::messages::{ProcessDescriptor, ThreadDescriptor, TracePacket, TrackDescriptor};
use super::packets::Packets;

/// Track of what concerns the whole profile. Tracks of threads follow, then those of processes.
pub(super) const PROFILE: u64 = 1;
const FIRST_THREAD: u64 = 2;

/// Every thread that the file names, in the order of their IDs.
pub(super) struct Threads {
    ids: Vec<ThreadId>,
    names: Vec<Bytes>,
}

impl Threads {
    pub(super) fn new(profile: &Profile) -> Threads {
        let mut threads: BTreeMap<ThreadId, Option<Name>> = BTreeMap::new();
        // The first name that is known wins, and an account has the last name of its thread.
        let mut add = |id, name: Option<Name>| {
            let known = threads.entry(id).or_default();
            *known = known.or(name);
        };
        for thread in &profile.threads {
            add(thread.id, Some(thread.comm));
        }
        for sample in profile.samples.keys() {
            if let Some(id) = sample.thread {
                add(id, Some(sample.comm));
            }
        }
        for event in profile.times.thread_events.iter().rev() {
            if let ThreadChange::Executed(name) | ThreadChange::Renamed(name) = event.change {
                add(event.thread, Some(name));
            }
        }
        for waker in profile.wakers.iter().flatten() {
            if let Some(id) = waker.thread {
                add(id, Some(waker.comm));
            }
        }
        let mut last = None;
        for id in profile.times.threads() {
            if last.replace(id) != Some(id) {
                add(id, None);
            }
        }
        let name = |name: Option<Name>| {
            let name = name.map_or(marker::UNNAMED, |name| &profile.names[name]);
            Bytes::copy_from_slice(name.as_bytes())
        };
        Threads {
            ids: threads.keys().copied().collect(),
            names: threads.into_values().map(name).collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns the place of a thread.
    pub(super) fn place(&self, id: ThreadId) -> Option<u32> {
        self.ids.binary_search(&id).ok().map(|place| place as u32)
    }

    pub(super) fn id(&self, place: u32) -> ThreadId {
        self.ids[place as usize]
    }

    /// Returns a thread's name, in UTF-8.
    pub(super) fn name(&self, place: u32) -> &Bytes {
        &self.names[place as usize]
    }

    pub(super) fn name_text(&self, place: u32) -> String {
        String::from_utf8_lossy(self.name(place)).into_owned()
    }

    /// Returns the number of a thread's track.
    pub(super) fn track(&self, place: u32) -> u64 {
        FIRST_THREAD + u64::from(place)
    }

    /// Returns the thread's ID as the kernel's events have it; `None` if no thread can have it.
    /// ID 0 is the idle thread of each CPU.
    pub(super) fn kernel_id(&self, place: u32) -> Option<i32> {
        kernel_id(self.id(place).tid)
    }

    /// Writes the description of each track.
    pub(super) fn write(&self, profile: &Profile, packets: &mut Packets) -> io::Result<()> {
        packets.put(descriptor(TrackDescriptor {
            uuid: PROFILE,
            name: Some("systemscope".to_owned()),
            ..TrackDescriptor::default()
        }))?;
        // Perfetto takes a second description of one PID for another process.
        let processes = profile.processes.iter();
        let processes = processes.filter_map(|process| Some((kernel_id(process.pid)?, process)));
        let processes: BTreeMap<i32, &Process> = processes.collect();
        let uuids = FIRST_THREAD + self.len() as u64..;
        for (uuid, (pid, process)) in uuids.zip(processes) {
            let command_line = process.command_line.iter();
            packets.put(descriptor(TrackDescriptor {
                uuid,
                process: Some(ProcessDescriptor {
                    pid: Some(pid),
                    cmdline: command_line.map(ToString::to_string).collect(),
                    process_name: process.executable.to_string(),
                }),
                ..TrackDescriptor::default()
            }))?;
        }
        for (place, id) in (0..).zip(&self.ids) {
            packets.put(descriptor(self.descriptor(place, *id)))?;
        }
        Ok(())
    }

    fn descriptor(&self, place: u32, id: ThreadId) -> TrackDescriptor {
        let thread_name = self.name_text(place);
        let (name, thread) = match (kernel_id(id.pid), kernel_id(id.tid)) {
            (Some(pid), Some(tid)) => {
                let thread = ThreadDescriptor {
                    pid: Some(pid),
                    tid: Some(tid.into()),
                    thread_name,
                };
                (None, Some(thread))
            }
            _ => (Some(format!("{thread_name}-{}/{}", id.pid, id.tid)), None),
        };
        TrackDescriptor {
            uuid: self.track(place),
            name,
            thread,
            ..TrackDescriptor::default()
        }
    }
}

fn kernel_id(id: u32) -> Option<i32> {
    i32::try_from(id).ok().filter(|id| *id != 0)
}

fn descriptor(track: TrackDescriptor) -> TracePacket {
    TracePacket {
        track_descriptor: Some(track),
        ..TracePacket::default()
    }
}
