//! Collects cpudist's spans, one period of its output at a time.

use std::collections::HashMap;
use std::fs;

use bpf::types::{
    Losses, RecentSum, SPAN_SLOTS, SpanCounts, SpanKey, SpanKind, SpanOwner, SpanSum, Thread,
    Waiting,
};
use bpf::{ProgramName, programs};
use libbpf_rs::{Link, Map, MapCore, MapFlags, ProgramMut};
use loader::iterators::{self, copy};
use loader::maps::take_all;
use loader::{Context, LoadedObject, OpenObject, Result, Targets, Variable, run_here, run_on_each};
use profile::spans::{Apart, Bucket, Distribution, Histogram, Kind, Owner, Row, Scale};

use crate::record::counts::DoubleBuffer;
use crate::record::session::moves::Moves;
use crate::record::window_variables::WindowVariables;

/// Time of an end that never comes, in ns. It leaves one bit of a word for the slot.
pub const NEVER: u64 = u64::MAX >> 1;
/// Name of the idle task, without the number of its CPU.
const IDLE: &str = "swapper";

/// Settings that say which spans a run of cpudist counts, and how.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// Kind of the spans.
    pub kind: Kind,
    /// Owners by which spans are distinguished, if any.
    pub apart: Option<Apart>,
    /// Unit in which lengths are grouped by powers of two.
    pub scale: Scale,
}

impl Question {
    /// Sets the constants of programs that are configured for the targets already. Loads no
    /// programs and gives no capacity to maps that the question does not need.
    pub fn configure(&self, object: &mut OpenObject) -> Result<()> {
        let owner = match self.apart {
            None => SpanOwner::OWNER_NONE,
            Some(Apart::Processes) => SpanOwner::OWNER_PROCESS,
            Some(Apart::Threads) => SpanOwner::OWNER_THREAD,
        };
        let kind = match self.kind {
            Kind::Running => SpanKind::SPANS_RUNNING,
            Kind::OffCpu => SpanKind::SPANS_OFF_CPU,
            Kind::Blocked => SpanKind::SPANS_BLOCKED,
            Kind::Runnable => SpanKind::SPANS_RUNNABLE,
        };
        object.set(
            bpf::constants::IN_MILLISECONDS,
            self.scale == Scale::Milliseconds,
        )?;
        object.set(bpf::constants::SPAN_OWNER, owner)?;
        object.set(bpf::constants::SPAN_KIND, kind)?;

        let hooks = self.hooks();
        for hook in ALL_HOOKS {
            object.choose(hook, hooks.contains(&hook))?;
        }
        let is_off_cpu = self.kind != Kind::Running;
        object.choose(programs::FIND_PREEXISTING, is_off_cpu)?;
        object.choose(programs::READ_WAITING, is_off_cpu)?;
        if !is_off_cpu {
            // This question needs no moves: programs see at each switch which thread is on a CPU.
            object.choose(programs::NOTE_MOVE, false)?;
            object.choose(programs::FIND_DEPARTED, false)?;
        }
        for map in [bpf::maps::THREADS, bpf::maps::RETURNED] {
            if is_off_cpu {
                object.make_room_for_threads(map)?;
            } else {
                object.make_room(map, 1)?;
            }
        }
        if self.apart.is_none() {
            for map in [
                bpf::maps::SUMS_EVEN,
                bpf::maps::SUMS_ODD,
                bpf::maps::ENDED_OWNERS,
            ] {
                object.make_room(map, 1)?;
            }
        }
        // Only stacks and accounts are sent as messages.
        object.make_room(bpf::maps::EVENTS, 4096)
    }

    /// Returns the programs at kernel events that this question needs.
    fn hooks(&self) -> Vec<ProgramName> {
        let mut hooks = match self.kind {
            Kind::Running => vec![programs::SWITCH_RUNNING],
            _ => vec![
                programs::SCHED_SWITCH,
                programs::SCHED_WAKEUP_NEW,
                programs::SCHED_PROCESS_EXEC,
            ],
        };
        // Wake-ups of threads matter only for these kinds.
        if matches!(self.kind, Kind::Blocked | Kind::Runnable) {
            hooks.push(programs::SCHED_WAKING);
        }
        if self.apart.is_some() {
            hooks.push(programs::NOTE_NAME);
        }
        hooks
    }
}

/// Programs at kernel events that a question can need.
const ALL_HOOKS: [ProgramName; 6] = [
    programs::SWITCH_RUNNING,
    programs::SCHED_SWITCH,
    programs::SCHED_WAKEUP_NEW,
    programs::SCHED_PROCESS_EXEC,
    programs::SCHED_WAKING,
    programs::NOTE_NAME,
];

/// Collector of programs' counts, one period of the output at a time.
pub struct SpanCollector<'a> {
    question: Question,
    /// Links of the programs at kernel events. They stay attached until the last period is read.
    links: Vec<Link>,
    counts: Map<'a>,
    recent: Map<'a>,
    returned: Map<'a>,
    ended_owners: Map<'a>,
    sums: DoubleBuffer<'a>,
    visit_cpu: ProgramMut<'a>,
    /// Programs that read threads off the CPU, before the first period and at the end of each
    /// period.
    find_preexisting: ProgramMut<'a>,
    read_waiting: ProgramMut<'a>,
    window: WindowVariables<'a>,
    begin_interval: ProgramMut<'a>,
    preexisting_are_known: Variable<'a, u8>,
    moves: Option<Moves<'a>>,
    /// Threads that left the targets after the period's end. The rest of their spans counts in the
    /// next period.
    left_late: Vec<Waiting>,
    /// Slot in which the period is counted, and its start and end in ns of CLOCK_MONOTONIC.
    slot: usize,
    start: u64,
    end: u64,
    /// Histograms that were read in the period, by slot and owner. The owner is 0 unless owners are
    /// distinguished.
    read: [HashMap<u32, Histogram>; SPAN_SLOTS],
}

impl<'a> SpanCollector<'a> {
    /// Attaches an object that is configured for this question and these targets.
    pub fn attach(object: &'a LoadedObject, question: Question, targets: &Targets) -> Result<Self> {
        let moves = match question.kind {
            Kind::Running => None,
            _ => Moves::new(object, targets)?,
        };
        Ok(SpanCollector {
            links: object.attach(&question.hooks())?,
            question,
            counts: object.map(bpf::maps::SPAN_COUNTS)?,
            recent: object.map(bpf::maps::RECENT_SUMS)?,
            returned: object.map(bpf::maps::RETURNED)?,
            ended_owners: object.map(bpf::maps::ENDED_OWNERS)?,
            sums: DoubleBuffer::for_sums(object)?,
            visit_cpu: object.program(programs::VISIT_CPU)?,
            find_preexisting: object.program(programs::FIND_PREEXISTING)?,
            read_waiting: object.program(programs::READ_WAITING)?,
            window: WindowVariables::new(object)?,
            begin_interval: object.program(programs::BEGIN_INTERVAL)?,
            preexisting_are_known: object.variable(bpf::variables::PREEXISTING_ARE_KNOWN)?,
            moves,
            left_late: Vec::new(),
            slot: 0,
            start: 0,
            end: 0,
            read: Default::default(),
        })
    }

    /// Opens the window at `start`. The first period ends at the time that `next_end` returns, as
    /// in [`SpanCollector::end_sooner`]. Both times are in ns of CLOCK_MONOTONIC.
    pub fn open_window(&mut self, start: u64, next_end: impl Fn() -> u64) -> Result<()> {
        self.begin(start, next_end)?;
        self.window.start.set(start);
        Ok(())
    }

    /// Records which threads are on a CPU or off it. Callers call this right after the window's
    /// start.
    pub fn seed(&mut self) -> Result<()> {
        if self.question.kind == Kind::Running {
            return run_on_each(&self.visit_cpu);
        }
        iterators::run::<u64>(&self.find_preexisting)?;
        self.preexisting_are_known.set(1);
        Ok(())
    }

    /// Returns the end of the current period, in ns of CLOCK_MONOTONIC.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Moves the end of the period to the time that `next_end` returns, if that is earlier.
    /// `next_end` must return a time at least a millisecond after its call. It is called again if
    /// that time passes before programs know it.
    pub fn end_sooner(&mut self, next_end: impl Fn() -> u64) -> Result<()> {
        loop {
            let end = next_end();
            if end >= self.end || self.try_to_begin(self.start, end)? {
                return Ok(());
            }
        }
    }

    fn begin(&mut self, start: u64, next_end: impl Fn() -> u64) -> Result<()> {
        while !self.try_to_begin(start, next_end())? {}
        Ok(())
    }

    /// Tells programs a period. Returns whether they knew of the period before its end.
    fn try_to_begin(&mut self, start: u64, end: u64) -> Result<bool> {
        let word = end << 1 | self.slot as u64;
        let is_begun = run_here(&self.begin_interval, &[start, word])? == 0;
        if is_begun {
            (self.start, self.end) = (start, end);
        }
        Ok(is_begun)
    }

    /// Empties the sums if half of their capacity is used. Callers call this often.
    pub fn take(&mut self) -> Result<()> {
        if self.question.apart.is_some() && self.sums.used() >= self.sums.room() / 2 {
            self.read_sums()?;
        }
        if self.moves.as_ref().is_some_and(Moves::are_due) {
            self.follow_moves()
        } else {
            Ok(())
        }
    }

    /// Counts the open spans of threads that left the targets, and begins the spans of threads that
    /// joined them.
    fn follow_moves(&mut self) -> Result<()> {
        let Some(moves) = &mut self.moves else {
            return Ok(());
        };
        let until = moves.begin()?;
        let departed: Vec<(Waiting, Thread)> =
            moves.take_departed(|thread: &Waiting| thread.task)?;
        iterators::run::<u64>(&self.find_preexisting)?;
        moves.end(until);
        self.count_departed(departed.into_iter().map(|(thread, _)| thread));
        Ok(())
    }

    /// Counts the parts inside the period of the open spans of threads that left the targets.
    fn count_departed(&mut self, departed: impl IntoIterator<Item = Waiting>) {
        for thread in departed {
            self.count_part(&thread, thread.end.min(self.end));
            if thread.end > self.end {
                self.left_late.push(thread);
            }
        }
    }

    /// Returns the spans of the period, which has ended, and begins the next period. The next
    /// period ends at the time that `next_end` returns, as in [`SpanCollector::end_sooner`].
    pub fn next_interval(&mut self, next_end: impl Fn() -> u64) -> Result<Distribution> {
        self.follow_moves()?;
        // After the visit, no program runs that began before the period's end, and spans that
        // continue are split.
        run_on_each(&self.visit_cpu)?;
        if self.question.kind != Kind::Running {
            self.count_waiting()?;
        }
        match self.question.apart {
            None => self.read_counts()?,
            Some(_) => {
                self.read_sums()?;
                self.read_recent()?;
            }
        }
        // The next period begins before names are looked up, because that takes time.
        let (slot, start_ns, end_ns) = (self.slot, self.start, self.end);
        self.slot = 1 - slot;
        self.begin(end_ns, next_end)?;
        let left_late = std::mem::take(&mut self.left_late);
        self.count_departed(left_late);
        let rows = self.rows(slot);
        let Question { kind, apart, scale } = self.question;
        Ok(Distribution {
            kind,
            apart,
            scale,
            start_ns,
            end_ns,
            rows,
        })
    }

    /// Returns the spans of the last period, and the losses of all periods.
    pub fn finish(mut self) -> Result<(Distribution, Losses)> {
        let last = self.next_interval(|| NEVER)?;
        drop(self.links);
        Ok((last, self.window.lost.get()))
    }

    /// Switches programs to the other map, and adds the sums of the previous map.
    fn read_sums(&mut self) -> Result<()> {
        let full = self.sums.swap()?;
        let (read, scale) = (&mut self.read, self.question.scale);
        take_all(full, "the spans", |key: SpanKey, sum: SpanSum| {
            add(
                &mut read[usize::from(key.slot) % SPAN_SLOTS],
                scale,
                key,
                &sum,
            );
        })
    }

    /// Adds the slot's counts of all CPUs.
    fn read_counts(&mut self) -> Result<()> {
        let read = histogram(&mut self.read[self.slot], 0, self.question.scale);
        for bytes in take_slot(&self.counts, self.slot)? {
            if let Some(counts) = copy::<SpanCounts>(&bytes) {
                read.add_counts(&counts.buckets, counts.total, counts.longest);
            }
        }
        Ok(())
    }

    /// Adds the slot's sums by owner that each CPU keeps separately.
    fn read_recent(&mut self) -> Result<()> {
        for bytes in take_slot(&self.recent, self.slot)? {
            bytes
                .chunks_exact(size_of::<RecentSum>())
                .filter_map(copy::<RecentSum>)
                .filter(|recent| recent.sum.spans > 0)
                .for_each(|RecentSum { key, sum }| {
                    add(&mut self.read[self.slot], self.question.scale, key, &sum);
                });
        }
        Ok(())
    }

    /// Adds the part inside the period of each span that continues after the period's end.
    fn count_waiting(&mut self) -> Result<()> {
        let still: Vec<Waiting> = iterators::run(&self.read_waiting)?;
        let mut waiting: HashMap<u64, Waiting> = still
            .into_iter()
            .map(|thread| (thread.task, thread))
            .collect();
        // This map is read last, because a thread that the iterator missed has returned by then.
        take_all(
            &self.returned,
            "the threads that are back",
            |task, thread: Waiting| {
                if thread.end == self.end {
                    waiting.insert(task, thread);
                }
            },
        )?;
        for thread in waiting.into_values() {
            self.count_part(&thread, self.end);
        }
        Ok(())
    }

    /// Adds the part of a thread's span between the period's start and `end`.
    fn count_part(&mut self, thread: &Waiting, end: u64) {
        let (since, until) = part(thread, self.question.kind, self.start, end);
        let owner = self.question.apart.map_or(0, |_| thread.owner);
        if since < until {
            histogram(&mut self.read[self.slot], owner, self.question.scale).add(until - since);
        }
    }

    /// Returns the rows of a slot, with the longest total time first.
    fn rows(&mut self, slot: usize) -> Vec<Row> {
        let apart = self.question.apart;
        let mut rows: Vec<Row> = std::mem::take(&mut self.read[slot])
            .into_iter()
            .map(|(id, histogram)| Row {
                owner: apart.map(|_| Owner {
                    id,
                    comm: self.name(id),
                }),
                histogram,
            })
            .collect();
        rows.sort_by_key(|row| {
            let id = row.owner.as_ref().map(|owner| owner.id);
            (std::cmp::Reverse(row.histogram.total_ns()), id)
        });
        rows
    }

    /// Returns the present name of a process or thread, or its last name if it has ended.
    fn name(&self, id: u32) -> Option<String> {
        if id == 0 {
            return Some(IDLE.to_owned());
        }
        let raw = fs::read(format!("/proc/{id}/comm"))
            .map(|mut line| {
                line.pop_if(|last| *last == b'\n');
                line
            })
            .ok()
            .or_else(|| {
                self.ended_owners
                    .lookup(&id.to_ne_bytes(), MapFlags::ANY)
                    .ok()
                    .flatten()
            })?;
        Some(profile::text::comm(&raw).into())
    }
}

/// Returns each CPU's values of a slot, and clears the slot. No program may use the slot any more.
fn take_slot(map: &Map<'_>, slot: usize) -> Result<Vec<Vec<u8>>> {
    let slot = (slot as u32).to_ne_bytes();
    let per_cpu = map
        .lookup_percpu(&slot, MapFlags::ANY)
        .context("read the spans")?
        .unwrap_or_default();
    let nothing: Vec<Vec<u8>> = per_cpu.iter().map(|bytes| vec![0; bytes.len()]).collect();
    map.update_percpu(&slot, &nothing, MapFlags::ANY)
        .context("clear the spans")?;
    Ok(per_cpu)
}

/// Adds spans of one owner in one bucket.
fn add(read: &mut HashMap<u32, Histogram>, scale: Scale, key: SpanKey, sum: &SpanSum) {
    let bucket = Bucket {
        spans: sum.spans,
        total_ns: sum.total,
    };
    histogram(read, key.owner, scale).add_bucket(key.bucket.into(), bucket, sum.longest);
}

fn histogram(read: &mut HashMap<u32, Histogram>, owner: u32, scale: Scale) -> &mut Histogram {
    read.entry(owner).or_insert_with(|| Histogram::new(scale))
}

/// Returns the start and end of the part of a thread's span that lies inside the period. The thread
/// must have been off the CPU at the period's end.
fn part(thread: &Waiting, kind: Kind, start: u64, end: u64) -> (u64, u64) {
    let woken = match thread.woken {
        0 => end,
        woken => woken.min(end),
    };
    let (since, until) = match kind {
        Kind::Blocked => (thread.off_since, woken),
        Kind::Runnable => (woken, end),
        Kind::OffCpu | Kind::Running => (thread.off_since, end),
    };
    (since.max(start), until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_in_the_interval_and_join() {
        let thread = |off_since, woken| {
            let mut thread = Waiting::default();
            (thread.off_since, thread.woken) = (off_since, woken);
            thread
        };
        let asleep = thread(50, 0);
        assert_eq!(part(&asleep, Kind::OffCpu, 100, 200), (100, 200));
        assert_eq!(part(&asleep, Kind::Blocked, 0, 200), (50, 200));
        let (since, until) = part(&asleep, Kind::Runnable, 100, 200);
        assert!(since >= until);

        let woken = thread(150, 180);
        assert_eq!(part(&woken, Kind::Blocked, 100, 200), (150, 180));
        assert_eq!(part(&woken, Kind::Runnable, 100, 200), (180, 200));
        // The wake-up came after the end of the period, so the thread was still blocked then.
        let later = thread(150, 250);
        assert_eq!(part(&later, Kind::Blocked, 100, 200), (150, 200));
        let (since, until) = part(&later, Kind::Runnable, 100, 200);
        assert!(since >= until);
        // The waker woke this thread before the period, and the thread has waited for a CPU since.
        let (since, until) = part(&woken, Kind::Blocked, 190, 200);
        assert!(since >= until);
        assert_eq!(part(&woken, Kind::Runnable, 190, 200), (190, 200));
    }
}
