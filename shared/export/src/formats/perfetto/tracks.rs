//! Threads and processes, and the track of each.

use std::collections::BTreeMap;
use std::io;

use profile::{Process, Profile, ThreadId, marker};
use prost::bytes::Bytes;

use super::messages::{ProcessDescriptor, ThreadDescriptor, TracePacket, TrackDescriptor};
use super::packets::Packets;
use crate::lanes::{LaneNames, Lanes};

/// Track of what concerns the whole profile. Tracks of threads follow, then all others.
pub(super) const PROFILE: u64 = 1;
const FIRST_THREAD: u64 = 2;

/// Numbers of tracks that belong to no thread as a whole.
pub(super) struct Uuids(u64);

impl Uuids {
    pub(super) fn new(threads: &Threads) -> Uuids {
        Uuids(FIRST_THREAD + threads.ids.len() as u64)
    }

    fn add(&mut self) -> u64 {
        self.0 += 1;
        self.0 - 1
    }

    /// Writes the description of another track of a thread, and returns its number. Perfetto shows
    /// tracks of one name together.
    pub(super) fn write(
        &mut self,
        parent_uuid: u64,
        name: &str,
        packets: &mut Packets,
    ) -> io::Result<u64> {
        let uuid = self.add();
        packets.put(descriptor(TrackDescriptor {
            uuid,
            parent_uuid: Some(parent_uuid),
            name: Some(name.to_owned()),
            ..TrackDescriptor::default()
        }))?;
        Ok(uuid)
    }
}

/// Every thread that the file names, in the order of their IDs.
pub(super) struct Threads {
    ids: Vec<ThreadId>,
    names: Vec<Bytes>,
}

impl Threads {
    pub(super) fn new(profile: &Profile, lanes: &Lanes) -> Threads {
        let names = LaneNames::new(profile);
        // Threads without rows: those of samples, and wakers. A waker has its name with it.
        let mut threads: BTreeMap<ThreadId, &str> = BTreeMap::new();
        for waker in profile.wakers.iter().flatten() {
            threads.extend(waker.thread.map(|id| (id, &*profile.names[waker.comm])));
        }
        let samples = profile.samples.keys().filter_map(|sample| sample.thread);
        for id in lanes.threads().iter().copied().chain(samples) {
            let name = threads.entry(id).or_insert(marker::UNNAMED);
            *name = names.thread(id).unwrap_or(name);
        }
        let name = |name: &str| Bytes::copy_from_slice(name.as_bytes());
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
    pub(super) fn write(
        &self,
        profile: &Profile,
        uuids: &mut Uuids,
        packets: &mut Packets,
    ) -> io::Result<()> {
        packets.put(descriptor(TrackDescriptor {
            uuid: PROFILE,
            name: Some("systemscope".to_owned()),
            ..TrackDescriptor::default()
        }))?;
        // Perfetto takes a second description of one PID for another process.
        let processes = profile.processes.iter();
        let processes = processes.filter_map(|process| Some((kernel_id(process.pid)?, process)));
        let processes: BTreeMap<i32, &Process> = processes.collect();
        let names = LaneNames::new(profile);
        for (pid, process) in processes {
            let command_line = process.command_line.iter();
            let name = names.process(process.pid);
            packets.put(descriptor(TrackDescriptor {
                uuid: uuids.add(),
                process: Some(ProcessDescriptor {
                    pid: Some(pid),
                    cmdline: command_line.map(ToString::to_string).collect(),
                    process_name: name.unwrap_or_default().to_owned(),
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
