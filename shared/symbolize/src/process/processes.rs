//! Mappings of all processes that were seen.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;

use crate::losses::Losses;
use crate::process::copies;
use crate::process::images::{Image, Images};
use crate::process::proc::Proc;
use process::Process;

/// Maximum number of processes whose mappings are kept. Above it, the half of the processes that
/// was unused for the longest time is dropped.
const MAX_PROCESSES: usize = 4096;
/// Divisor of the time that gives the time for reading again the mappings of one process. An
/// address in no mapping is a sign of a new mapping. An unwind through code without frame pointers
/// yields such addresses, too.
const REREAD_SHARE: u32 = 50;
/// The same divisor for all processes together.
const REREAD_SHARE_OF_ALL: u32 = 10;
/// Maximum time for reading again that may be saved up.
const MAX_SAVED: Duration = Duration::from_millis(5);

/// Executable mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping {
    /// First address.
    pub(crate) start: u64,
    /// Address after the last one.
    pub(crate) end: u64,
    /// Offset in the file at the first address, in bytes.
    pub(crate) offset: u64,
    /// Image behind the mapping.
    pub(crate) image: Image,
}

/// State of one process.
struct Known {
    /// Start time in ticks since boot; `None` if the process had ended before it was first seen.
    started: Option<u64>,
    mappings: Vec<Mapping>,
    used: u64,
    /// Time at which the mappings may be read again.
    again_at: Instant,
}

/// Mappings of all processes that were seen.
#[derive(Default)]
pub(crate) struct Processes {
    known: HashMap<Process, Known, RandomState>,
    /// Newest known instance of each PID. The mappings of older instances cannot be read.
    newest: HashMap<u32, u64>,
    /// Processes with more executable mappings than the maximum that is read.
    crowded: HashSet<Process>,
    clock: u64,
    /// Time at which mappings of any process may be read again.
    again_at: Option<Instant>,
}

impl Processes {
    /// Reads the mappings of a process now, even if they are known.
    pub(crate) fn read(&mut self, process: Process, images: &mut Images, losses: &mut Losses) {
        if !self.record_instance(process) {
            return;
        }
        let begun = Instant::now();
        let before = self.known.get(&process);
        let expected = before.and_then(|known| known.started);
        let payable = before.map(|known| known.again_at);
        let read = Proc::open(process.pid).and_then(|proc| {
            let started = proc.started()?;
            let maps = proc.mappings()?;
            Ok((proc, started, maps))
        });
        let now = Instant::now();
        match read {
            Ok((proc, started, maps)) if expected.is_none_or(|before| before == started) => {
                let copies = copies::find(process.pid, &proc, &maps, images);
                if (maps.are_cut || copies.are_cut) && self.crowded.insert(process) {
                    losses.crowded_processes += 1;
                    let why = "more executable mappings than are read";
                    losses.note(&format!("process {}", process.pid), why);
                }
                let mappings = maps.code.iter().map(|entry| Mapping {
                    start: entry.start,
                    end: entry.end,
                    offset: entry.offset,
                    image: images.image(&proc, entry, losses),
                });
                let mut mappings: Vec<Mapping> = mappings.collect();
                for (index, image, offset) in copies.found {
                    let copy = Mapping {
                        image,
                        offset,
                        ..mappings[index]
                    };
                    mappings[index] = copy;
                }
                let known = Known {
                    started: Some(started),
                    mappings,
                    used: self.clock,
                    again_at: again_at(payable, begun..now, REREAD_SHARE),
                };
                self.known.insert(process, known);
            }
            // The process has ended, or another process has its PID. The known mappings remain
            // valid.
            _ if before.is_some_and(|known| known.started.is_some()) => {
                if let Some(known) = self.known.get_mut(&process) {
                    known.again_at = again_at(Some(now), begun..now, REREAD_SHARE);
                }
            }
            Ok(_) => {}
            Err(error) => {
                if before.is_none() {
                    losses.processes += 1;
                    losses.note(&format!("process {}", process.pid), error);
                }
                let gone = Known {
                    started: None,
                    mappings: Vec::new(),
                    used: self.clock,
                    again_at: now,
                };
                self.known.insert(process, gone);
            }
        }
        self.forget();
    }

    /// Finds the mapping of an address. Reads the mappings of the process if they are not known, or
    /// may have changed.
    pub(crate) fn mapping(
        &mut self,
        process: Process,
        address: u64,
        images: &mut Images,
        losses: &mut Losses,
    ) -> Option<Mapping> {
        self.clock += 1;
        if let Some(known) = self.known.get_mut(&process) {
            known.used = self.clock;
            if let Some(mapping) = known.find(address) {
                return Some(mapping);
            }
            let begun = Instant::now();
            let is_paid = self.again_at.is_none_or(|at| at <= begun);
            if !is_paid || !known.may_read_again(begun) {
                return None;
            }
            self.read(process, images, losses);
            let taken = begun..Instant::now();
            self.again_at = Some(again_at(self.again_at, taken, REREAD_SHARE_OF_ALL));
        } else {
            self.read(process, images, losses);
        }
        self.known.get(&process)?.find(address)
    }

    /// Finds the last mapping that begins before an address. Reads the mappings of the process if
    /// they are not known.
    pub(crate) fn last_before(
        &mut self,
        process: Process,
        address: u64,
        images: &mut Images,
        losses: &mut Losses,
    ) -> Option<Mapping> {
        if !self.known.contains_key(&process) {
            self.read(process, images, losses);
        }
        self.known.get(&process)?.before(address).copied()
    }

    /// Returns the mappings of a process, from their last read.
    pub(crate) fn mappings(&self, process: Process) -> &[Mapping] {
        let known = self.known.get(&process);
        known.map_or(&[], |known| &known.mappings)
    }

    /// Returns the IDs of the processes that map each file, from the last read of their mappings.
    pub(crate) fn pids(&self) -> HashMap<u32, Vec<u32>> {
        let mut pids: HashMap<u32, Vec<u32>> = HashMap::new();
        for (process, known) in &self.known {
            for mapping in &known.mappings {
                if let Image::File(file) = mapping.image {
                    pids.entry(file).or_default().push(process.pid);
                }
            }
        }
        pids
    }

    /// Returns the start time of the process in ticks since boot, if it was read.
    pub(crate) fn started(&self, process: Process) -> Option<u64> {
        self.known.get(&process)?.started
    }

    /// Records this instance of the PID. Returns whether no later instance was seen.
    pub(crate) fn record_instance(&mut self, process: Process) -> bool {
        let newest = self.newest.entry(process.pid).or_insert(process.instance);
        *newest = process.instance.max(*newest);
        *newest == process.instance
    }

    /// Returns whether a later instance of the PID was seen.
    pub(crate) fn has_been_replaced(&self, process: Process) -> bool {
        let newest = self.newest.get(&process.pid);
        newest.is_some_and(|newest| *newest > process.instance)
    }

    fn forget(&mut self) {
        if self.known.len() <= MAX_PROCESSES {
            return;
        }
        let mut uses: Vec<u64> = self.known.values().map(|known| known.used).collect();
        uses.sort_unstable();
        let median = uses[uses.len() / 2];
        self.known.retain(|_, known| known.used >= median);
        // Samples of a process that was unused for so long can no longer arrive.
        let known: HashSet<u32> = self.known.keys().map(|process| process.pid).collect();
        self.newest.retain(|pid, _| known.contains(pid));
    }
}

impl Known {
    fn before(&self, address: u64) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|m| m.start <= address);
        self.mappings[..after].last()
    }

    fn find(&self, address: u64) -> Option<Mapping> {
        let mapping = self.before(address)?;
        (address < mapping.end).then_some(*mapping)
    }

    fn may_read_again(&self, now: Instant) -> bool {
        self.started.is_some() && self.again_at <= now
    }
}

/// Returns the time at which mappings may be read again, after a read at the time `taken`. The read
/// was due at `before`. The pause is `share` times its duration.
fn again_at(before: Option<Instant>, taken: Range<Instant>, share: u32) -> Instant {
    let saved = taken.start.checked_sub(MAX_SAVED * share);
    let saved = saved.unwrap_or(taken.start);
    before.map_or(saved, |before| before.max(saved)) + (taken.end - taken.start) * share
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn known(again_at: Instant) -> Known {
        Known {
            started: Some(1),
            mappings: vec![
                Mapping {
                    start: 10,
                    end: 20,
                    offset: 0,
                    image: Image::Jit,
                },
                Mapping {
                    start: 30,
                    end: 40,
                    offset: 0,
                    image: Image::Vdso,
                },
            ],
            used: 0,
            again_at,
        }
    }

    /// Such addresses in no mapping come from unwinds through code of a JIT compiler.
    #[test]
    fn all_processes_together_have_a_share_of_the_time() {
        let mut processes = Processes::default();
        let (mut images, mut losses) = (Images::new(10), Losses::default());
        let process = |instance| Process {
            pid: std::process::id(),
            instance,
        };
        let (begun, mut longest) = (Instant::now(), Duration::ZERO);
        for instance in 1.. {
            // Each instance is later than the one before, and its mappings were not read again yet.
            processes.mapping(process(instance), 0, &mut images, &mut losses);
            let before = Instant::now();
            processes.mapping(process(instance), 0, &mut images, &mut losses);
            longest = longest.max(before.elapsed());
            if begun.elapsed() > Duration::from_millis(300) {
                break;
            }
        }
        let again_at = processes.again_at.unwrap();
        assert!(again_at < Instant::now() + longest * REREAD_SHARE_OF_ALL);
    }

    #[test]
    fn what_is_known_of_a_process_is_not_another_ones() {
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        // The first process lives, but started at another time. The second process has ended.
        for pid in [std::process::id(), gone.id()] {
            let process = Process { pid, instance: 1 };
            let mut processes = Processes::default();
            let mut losses = Losses::default();
            let begun = Instant::now();
            processes.known.insert(process, known(begun));
            processes.read(process, &mut Images::new(10), &mut losses);
            let starts = processes.mappings(process).iter().map(|m| m.start);
            assert_eq!(starts.collect::<Vec<_>>(), [10, 30]);
            assert!(processes.known[&process].again_at > begun);
            assert_eq!(losses, Losses::default());
        }
    }

    #[test]
    fn processes_not_used_for_longest_are_forgotten() {
        let process = |pid| Process { pid, instance: 1 };
        let mut processes = Processes::default();
        let most = MAX_PROCESSES as u32;
        for pid in 1..=most {
            processes.record_instance(process(pid));
            processes.known.insert(process(pid), known(Instant::now()));
        }
        let (mut images, mut losses) = (Images::new(10), Losses::default());
        // This loop uses the processes in order of their PIDs.
        for pid in 1..=most {
            processes.mapping(process(pid), 10, &mut images, &mut losses);
        }
        processes.forget();
        assert_eq!(processes.known.len(), MAX_PROCESSES);
        let mut last = known(Instant::now());
        last.used = u64::MAX;
        processes.known.insert(process(most + 1), last);
        processes.forget();
        assert_eq!(processes.known.len(), MAX_PROCESSES / 2 + 1);
        assert_eq!(processes.newest.len(), MAX_PROCESSES / 2);
        assert!(!processes.known.contains_key(&process(most / 2)));
        assert!(processes.known.contains_key(&process(most / 2 + 1)));
    }
}
