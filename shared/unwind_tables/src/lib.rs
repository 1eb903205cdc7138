//! Unwind tables of running processes. [`Unwinder`] makes the tables that the BPF walker
//! (`bpf/include/stacks/unwind.h`) needs, follows the processes as they change, and unwinds in
//! user space the stacks that came before their tables.

mod call_graph;
mod dumps;
mod files;
mod interpreted_frames;
mod kernel_tables;
mod notes;
mod space;
mod thread_memory;
mod walking;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bpf::types::{CHAIN_DEPTH, StackOwner};
use languages::{Attached, End, Layout};
use loader::{LoadedObject, Result};
use process::{Living, Process, ProcessMemory};
use symbolize::{CodeMapping, Symbolizer};
use unwind::{Memory, Mode, Registers, Walk, walk};

pub use call_graph::CallGraph;
use dumps::Dumps;
pub use dumps::{Dumped, process_of, registers};
use files::{Allowance, Files};
pub use interpreted_frames::InterpretedFrames;
pub use kernel_tables::make_room_for_tables;
use kernel_tables::{KernelTables, PlacedMappings};
use notes::Notes;
pub use space::MappedRuntime;
pub use space::Space;
pub use thread_memory::ThreadMemory;
pub use walking::Depths;
pub use walking::{Languages, Walking};

/// Part of the time that may go into reading mappings, so that a machine that
/// starts processes all the time is not made to wait for us.
const SCAN_SHARE: u32 = 10;
/// Reading mappings that can be saved up.
const MOST_SAVED: Duration = Duration::from_millis(200);
/// Of its cost, how long reading a process's mappings again has to wait.
const RESCAN_PAUSE: u32 = 10;
/// Dumps that may be on their way or waiting.
pub const MOST_DUMPS: usize = 64;
/// How often more dumps are allowed.
const ALLOW_INTERVAL: Duration = Duration::from_millis(20);
/// When to look at a program that has just begun: it maps its libraries by and by, and the
/// stack of its first wait may come when it has ended.
const FIRST_LOOKS: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(50),
    Duration::from_millis(300),
];
/// Looks at new programs that may be ahead.
const MOST_FIRST_LOOKS: usize = 1024;
/// How often to look whether processes have ended.
const SWEEP_INTERVAL: Duration = Duration::from_secs(2);

/// What is known of a process.
struct Known {
    /// Its code, with tables, once they are all there.
    space: Option<Space>,
    placed: Option<PlacedMappings>,
    /// Its mappings as last read, whose tables are not all there yet.
    awaited: Option<Vec<CodeMapping>>,
    scanned: Instant,
    cost: Duration,
    /// Bytes of its files that may still be read for tables.
    allowance: Allowance,
}

/// Counts of processes and files without unwind tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Processes whose mappings found no capacity.
    pub crowded_processes: u64,
    /// Files whose rows found no capacity.
    pub crowded_files: u64,
    /// Files that could not be read.
    pub unread_files: u64,
}

/// Keeps a program's unwind tables.
pub struct Unwinder<'a> {
    mode: Mode,
    walking: Walking,
    kernel: KernelTables<'a>,
    files: Files,
    processes: HashMap<Process, Known>,
    /// The newest instance seen of each PID: it alone is what runs.
    newest: HashMap<u32, u64>,
    /// Whose mappings are to be read, and whether a copy waits for that: those
    /// come first, since they may soon be gone.
    wanted: HashMap<Process, bool>,
    /// Programs that have just begun, and when to look at them.
    begun: Vec<(Instant, Process)>,
    /// Those that were found since somebody asked.
    runtimes: Vec<MappedRuntime>,
    dumps: Dumps,
    /// What could not be done.
    notes: Notes,
    /// Processes for whose mappings the kernel's tables had no capacity left.
    crowded_out: HashSet<Process>,
    /// Whether a process may be waiting for tables.
    is_any_awaited: bool,
    saved: Duration,
    worked: Instant,
    allowed: Instant,
    swept: Instant,
}

impl<'a> Unwinder<'a> {
    /// For programs that were told to walk so; `None` if that takes no tables.
    pub fn new(walking: Walking, object: &'a LoadedObject) -> Result<Option<Self>> {
        let mode = match walking.call_graph {
            CallGraph::Auto => Mode::Auto,
            CallGraph::Dwarf => Mode::Tables,
            CallGraph::Fp => return Ok(None),
        };
        let now = Instant::now();
        Ok(Some(Unwinder {
            mode,
            walking,
            kernel: KernelTables::new(object)?,
            files: Files::new(walking.languages.list()),
            processes: HashMap::new(),
            newest: HashMap::new(),
            wanted: HashMap::new(),
            begun: Vec::new(),
            runtimes: Vec::new(),
            dumps: Dumps::default(),
            notes: Notes::default(),
            crowded_out: HashSet::new(),
            is_any_awaited: false,
            saved: MOST_SAVED,
            worked: now,
            allowed: now,
            swept: now,
        }))
    }

    /// Makes the tables of these processes, those that have used most CPU time
    /// first, and returns when all are there or `patience` is over.
    pub fn prepare(
        &mut self,
        processes: &[Process],
        symbolizer: &mut Symbolizer,
        patience: Duration,
    ) {
        let begun = Instant::now();
        let mut processes = processes.to_vec();
        processes.sort_by_cached_key(|process| Reverse(cpu_ticks(process.pid)));
        for process in processes {
            self.want(process);
            if begun.elapsed() < patience {
                self.scan(process, symbolizer);
                self.files.collect(&mut self.kernel, Duration::ZERO);
            }
        }
        while self.files.is_building() && begun.elapsed() < patience {
            const STEP: Duration = Duration::from_millis(10);
            self.files.collect(&mut self.kernel, STEP);
        }
        self.publish(false);
    }

    /// A process's mappings are new or have changed.
    pub fn want(&mut self, process: Process) {
        let newest = self.newest.entry(process.pid).or_insert(process.instance);
        if process.instance > *newest {
            // What could be read now is no longer the mappings of that one.
            self.wanted.remove(&Process {
                pid: process.pid,
                instance: *newest,
            });
            *newest = process.instance;
        }
        if *newest == process.instance {
            self.wanted.entry(process).or_default();
        }
    }

    /// A process has begun to run a program.
    pub fn begins(&mut self, process: Process) {
        if self.begun.len() + FIRST_LOOKS.len() <= MOST_FIRST_LOOKS {
            let now = Instant::now();
            let looks = FIRST_LOOKS.map(|after| (now + after, process));
            self.begun.extend(looks);
        }
    }

    /// Processes are let go that were held before their first instruction: they have used
    /// no time.
    pub fn are_let_go(&mut self) {
        let known: Vec<Process> = self.processes.keys().copied().collect();
        for process in known {
            if cpu_ticks(process.pid) == 0 {
                self.begins(process);
            }
        }
    }

    /// Has those looked at for whom it is time.
    fn want_begun(&mut self) {
        let now = Instant::now();
        let due: Vec<_> = self.begun.extract_if(.., |(at, _)| *at <= now).collect();
        for (_, process) in due {
            self.want(process);
        }
    }

    /// A stack came as a copy, since its process or a mapping is new. Gives it
    /// back if there is no room to keep it.
    pub fn add_dump(&mut self, dumped: Dumped) -> Option<Dumped> {
        self.want(dumped.process);
        if let Some(has_dump) = self.wanted.get_mut(&dumped.process) {
            *has_dump = true;
        }
        self.dumps.add(dumped)
    }

    /// Whether a copy of this stack waits to be walked.
    pub fn has_dump(&self, id: u64) -> bool {
        self.dumps.any(|dumped| dumped.id == id)
    }

    /// Goes on with what is to be done. Returns stacks that could be walked.
    pub fn work(&mut self, symbolizer: &mut Symbolizer) -> Vec<(Dumped, Walk)> {
        let begun = Instant::now();
        self.saved = saved(self.saved, begun - self.worked);
        self.worked = begun;

        self.want_begun();
        self.files.collect(&mut self.kernel, Duration::ZERO);
        while self.saved > begun.elapsed()
            && let Some(process) = self.most_wanted(Instant::now())
        {
            self.scan(process, symbolizer);
        }
        self.saved = self.saved.saturating_sub(begun.elapsed());
        self.publish(false);
        if begun - self.swept >= SWEEP_INTERVAL {
            self.swept = begun;
            self.sweep();
        }
        self.walk_dumps(false)
    }

    /// How many more dumps may be sent, if that is to be set now.
    pub fn allowance(&mut self) -> Option<i64> {
        if self.allowed.elapsed() < ALLOW_INTERVAL {
            return None;
        }
        self.allowed = Instant::now();
        Some(MOST_DUMPS.saturating_sub(self.dumps.len()) as i64)
    }

    /// Walks what is left, with what tables there are by then.
    pub fn finish(&mut self, symbolizer: &mut Symbolizer) -> Vec<(Dumped, Walk)> {
        const LONGEST: Duration = Duration::from_secs(5);
        let begun = Instant::now();
        self.wanted.retain(|_, has_dump| *has_dump);
        while begun.elapsed() < LONGEST
            && let Some(process) = self.most_wanted(begun)
        {
            self.scan(process, symbolizer);
        }
        while self.dumps.len() > 0 && self.files.is_building() && begun.elapsed() < LONGEST {
            const STEP: Duration = Duration::from_millis(10);
            self.files.collect(&mut self.kernel, STEP);
        }
        self.publish(true);
        self.walk_dumps(true)
    }

    /// What could not be had, and how large it all is; for `-v`.
    pub fn notes(&self) -> Vec<String> {
        let (files, bytes) = self.files.size();
        let size = format!("unwind tables: {files} files, {} KiB", bytes.div_ceil(1024));
        let mut notes = vec![size];
        notes.extend_from_slice(self.files.notes.as_slice());
        notes.extend_from_slice(self.notes.as_slice());
        notes
    }

    /// Returns how many processes and files have no unwind tables.
    #[must_use]
    pub fn missing(&self) -> Missing {
        Missing {
            crowded_processes: self.crowded_out.len() as u64,
            crowded_files: self.files.crowded_out.len() as u64,
            unread_files: self.files.unread.len() as u64,
        }
    }

    /// The code of a process, if its tables are there.
    pub fn space(&self, process: Process) -> Option<&Space> {
        self.processes.get(&process)?.space.as_ref()
    }

    /// Walks a stack in user space, if the tables for it are there.
    pub fn walk(
        &self,
        process: Process,
        registers: Registers,
        leaf_is_exact: bool,
        memory: &mut impl Memory,
    ) -> Option<Walk> {
        let space = self.space(process)?;
        Some(walk(
            registers,
            leaf_is_exact,
            self.mode,
            space,
            memory,
            self.walking.max_stack,
        ))
    }

    /// The runtimes that were found since this was called last.
    pub fn take_runtimes(&mut self) -> Vec<MappedRuntime> {
        std::mem::take(&mut self.runtimes)
    }

    /// The layout by which a program read a runtime's frames.
    pub fn layout(&self, index: u32) -> Option<&Arc<Layout>> {
        self.kernel.layout(index)
    }

    /// The frames that a runtime keeps of a thread that is not running, if `process`, whose
    /// code it runs, is known to have a runtime that the thread belongs to.
    pub fn interpreted_frames(
        &self,
        process: Process,
        owner: &StackOwner,
        memory: &mut impl Memory,
    ) -> Option<InterpretedFrames> {
        let most = CHAIN_DEPTH.min(self.walking.max_stack);
        self.space(process)?
            .readable_runtimes()
            .find_map(|(base, layout)| {
                let attached = Attached {
                    base,
                    layout: Some(Arc::clone(layout)),
                };
                let language = layout.language;
                let chain = language.walk(&attached, memory, owner.thread_pointer, most);
                (chain.end != End::NoThread).then_some(InterpretedFrames {
                    process: process_of(owner),
                    layout: Arc::clone(layout),
                    chain,
                })
            })
    }

    /// The same of a stack that was dumped before its process was known to have one. `stack_of`
    /// is the ID of the stack with which a task is off the CPU: while it is this, the
    /// frames are those that were there.
    pub fn late_interpreted_frames(
        &self,
        dumped: &Dumped,
        stack_of: impl FnOnce(u64) -> Option<u64>,
    ) -> Option<InterpretedFrames> {
        let (_, layout) = self.space(dumped.process)?.readable_runtimes().next()?;
        let owner = &dumped.owner;
        let mut memory = ProcessMemory::new(owner.pid);
        let frames = self.interpreted_frames(dumped.process, owner, &mut memory);
        if stack_of(owner.task) == Some(dumped.id) {
            return frames;
        }
        Some(InterpretedFrames::not_read(
            process_of(owner),
            Arc::clone(layout),
        ))
    }

    /// Who is to be looked at next, at the time `now`.
    fn most_wanted(&self, now: Instant) -> Option<Process> {
        // Dumps are rationed, other reasons to look again are not.
        let may_scan = |process: &Process, has_dump: bool| {
            has_dump
                || self
                    .processes
                    .get(process)
                    .is_none_or(|known| now >= known.scanned + known.cost * RESCAN_PAUSE)
        };
        self.wanted
            .iter()
            .filter(|(process, has_dump)| may_scan(process, **has_dump))
            .max_by_key(|(_, has_dump)| **has_dump)
            .map(|(process, _)| *process)
    }

    /// Reads a process's mappings and has the tables for them made.
    fn scan(&mut self, process: Process, symbolizer: &mut Symbolizer) {
        self.wanted.remove(&process);
        let begun = Instant::now();
        symbolizer.watch(process);
        let code = symbolizer.code(process);
        let known = self.processes.entry(process).or_insert_with(|| Known {
            space: None,
            placed: None,
            awaited: None,
            scanned: begun,
            cost: Duration::ZERO,
            allowance: Allowance::default(),
        });
        let is_news = known
            .space
            .as_ref()
            .is_none_or(|space| space.code() != code);
        // A process that is gone has none, and keeps what is known of it.
        let awaited = (!code.is_empty() && is_news).then_some(code);
        for mapping in awaited.iter().flatten() {
            self.files
                .hold(mapping.source, symbolizer, &known.allowance);
        }
        for mapping in known.awaited.iter().flatten() {
            self.files.release(mapping.source);
        }
        self.is_any_awaited |= awaited.is_some();
        known.awaited = awaited;
        known.scanned = Instant::now();
        known.cost = begun.elapsed();
    }

    /// Puts processes in force whose tables are all there, or with `at_once`
    /// those whose are not, too.
    fn publish(&mut self, at_once: bool) {
        if !std::mem::take(&mut self.is_any_awaited) {
            return;
        }
        for (process, known) in &mut self.processes {
            let settled = |code: &mut Vec<CodeMapping>| {
                code.iter()
                    .all(|mapping| self.files.is_settled(mapping.source))
            };
            let Some(code) = known.awaited.take_if(|code| at_once || settled(code)) else {
                self.is_any_awaited |= known.awaited.is_some();
                continue;
            };
            let memory = ProcessMemory::new(process.pid);
            let space = Space::new(code, &memory, |source| self.files.table(source));
            self.runtimes.extend_from_slice(space.runtimes());
            let runtimes = self.kernel.runtimes(&space).unwrap_or_else(|error| {
                self.notes.add(format!("process {}: {error}", process.pid));
                Default::default()
            });
            let is_newest = self.newest.get(&process.pid) == Some(&process.instance);
            let before = known.placed.take();
            if is_newest {
                match self.kernel.place_process(*process, &space, runtimes) {
                    Ok(placed) => known.placed = Some(placed),
                    Err(error) => {
                        self.crowded_out.insert(*process);
                        self.notes.add(format!("process {}: {error}", process.pid));
                    }
                }
            }
            match before {
                Some(before) if known.placed.is_some() => self.kernel.give_back_mappings(before),
                Some(before) => self.kernel.remove_process(*process, before),
                None => {}
            }
            if let Some(before) = known.space.replace(space) {
                for mapping in before.code() {
                    self.files.release(mapping.source);
                }
            }
        }
    }

    /// Walks the dumps of processes that are known, or `all`.
    fn walk_dumps(&mut self, all: bool) -> Vec<(Dumped, Walk)> {
        let ready = |process: Process| {
            let known = self.processes.get(&process);
            !self.wanted.contains_key(&process) && known.is_none_or(|known| known.awaited.is_none())
        };
        let dumps = self.dumps.take(|process| all || ready(process));
        let nothing = Space::default();
        dumps
            .into_iter()
            .map(|mut dumped| {
                let space = self.space(dumped.process).unwrap_or(&nothing);
                let stack = &mut dumped.stack;
                let exact = dumped.leaf_is_exact;
                let walk = walk(
                    dumped.registers,
                    exact,
                    self.mode,
                    space,
                    stack,
                    self.walking.max_stack,
                );
                (dumped, walk)
            })
            .collect()
    }

    /// Gives back the tables of processes that have ended or run another
    /// program by now.
    fn sweep(&mut self) {
        let Some(living) = Living::among(self.newest.keys()) else {
            return;
        };
        let newest = &self.newest;
        let dumps = &self.dumps;
        let gone = self.processes.extract_if(|process, _| {
            let replaced = newest.get(&process.pid) != Some(&process.instance);
            let has_ended = replaced || !living.has(process.pid);
            has_ended && !dumps.any(|dumped| dumped.process == *process)
        });
        for (process, known) in gone {
            let space = known.space.iter().flat_map(|space| space.code());
            for mapping in space.chain(known.awaited.iter().flatten()) {
                self.files.release(mapping.source);
            }
            if let Some(placed) = known.placed {
                self.kernel.remove_process(process, placed);
            }
        }
        self.newest.retain(|pid, _| living.has(*pid));
        // Nothing is left to read of them; a copy is walked without.
        self.wanted.retain(|process, _| living.has(process.pid));
        self.files.forget(&mut self.kernel);
    }
}

/// The time in which processes may be looked at, if so much was left and so much has passed.
fn saved(left: Duration, passed: Duration) -> Duration {
    (left + passed / SCAN_SHARE).min(MOST_SAVED)
}

/// CPU time that a process has used: its `utime` and `stime` in proc(5), the
/// 12th and 13th field after its name, in clock ticks.
fn cpu_ticks(pid: u32) -> u64 {
    // Not text: the name is any bytes. The kernel bounds it.
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks = fields.split(' ').skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests;
