//! Unwind tables of running processes.
//!
//! [`Unwinder`] builds the tables for the unwind in BPF (`bpf/include/stacks/unwind.h`), and
//! follows the processes as they change. It unwinds in user space the stacks that arrived before
//! their tables were built.

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
use languages::{End, Layout, Thread};
use loader::{LoadedObject, Result};
use process::{Living, Process, ProcessMemory};
use symbolize::{CodeMapping, Symbolizer};
use unwind::{Memory, Mode, Registers, Walk, walk, walk_through};

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

/// Share of the elapsed time that may be spent on reading mappings, as a divisor. Machines that
/// start processes all the time are slowed down by at most this share.
const SCAN_SHARE: u32 = 10;
/// Maximum time for reading mappings that may be saved up.
const MAX_SAVED: Duration = Duration::from_millis(200);
/// Pause before the mappings of a process are read again, as a multiple of the time that the last
/// read took.
const RESCAN_PAUSE: u32 = 10;
/// Maximum number of dumps that are on their way to user space or wait to be unwound.
pub const MAX_DUMPS: usize = 64;
/// Interval between updates of the number of dumps that programs may send.
const ALLOW_INTERVAL: Duration = Duration::from_millis(20);
/// Times after the start of a program at which its mappings are read. A program maps its libraries
/// one by one, and the stack of its first wait may arrive only after the program ends.
const FIRST_SCANS: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(50),
    Duration::from_millis(300),
];
/// Maximum number of scheduled scans of new programs.
const MAX_FIRST_SCANS: usize = 1024;
/// Interval between sweeps of ended processes.
const SWEEP_INTERVAL: Duration = Duration::from_secs(2);

/// State of a process.
struct Known {
    /// Code with tables, once all tables are built.
    space: Option<Space>,
    placed: Option<PlacedMappings>,
    /// Mappings of the last scan, if some of their tables are not built yet.
    awaited: Option<Vec<CodeMapping>>,
    scanned: Instant,
    cost: Duration,
    /// Number of bytes of the process's files that may still be read for tables.
    allowance: Allowance,
}

/// Counts of processes and files without unwind tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Processes whose mappings did not fit into the kernel's tables.
    pub crowded_processes: u64,
    /// Files whose rows did not fit into the kernel's tables.
    pub crowded_files: u64,
    /// Files that could not be read.
    pub unread_files: u64,
}

/// Unwind tables of the processes that the programs of one object measure.
pub struct Unwinder<'a> {
    mode: Mode,
    walking: Walking,
    kernel: KernelTables<'a>,
    files: Files,
    processes: HashMap<Process, Known>,
    /// Newest known instance of each PID. Older instances no longer run.
    newest: HashMap<u32, u64>,
    /// Processes whose mappings must be read. The value is true if a dump waits for them. These
    /// processes come first, because they may soon end.
    wanted: HashMap<Process, bool>,
    /// New programs, and the times at which their scans are due.
    begun: Vec<(Instant, Process)>,
    /// Runtimes found since the last call of [`Unwinder::take_runtimes`].
    runtimes: Vec<(Process, MappedRuntime)>,
    dumps: Dumps,
    /// Failures, which `-v` prints.
    notes: Notes,
    /// Processes whose mappings did not fit into the kernel's tables.
    crowded_out: HashSet<Process>,
    /// True if a process may be waiting for its tables.
    is_any_awaited: bool,
    saved: Duration,
    worked: Instant,
    allowed: Instant,
    swept: Instant,
}

impl<'a> Unwinder<'a> {
    /// Returns an unwinder for programs with these settings; `None` if the programs use no tables.
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
            saved: MAX_SAVED,
            worked: now,
            allowed: now,
            swept: now,
        }))
    }

    /// Builds the tables of these processes, in descending order of the processes' CPU time.
    /// Returns when all tables are built, or after `patience`.
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
            self.queue_scan(process);
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

    /// Queues a scan of a process whose mappings are new or have changed.
    pub fn queue_scan(&mut self, process: Process) {
        let newest = self.newest.entry(process.pid).or_insert(process.instance);
        if process.instance > *newest {
            // The mappings of the older instance can no longer be read.
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

    /// Schedules the scans of a process that has begun to run a program.
    pub fn schedule_scans(&mut self, process: Process) {
        if self.begun.len() + FIRST_SCANS.len() <= MAX_FIRST_SCANS {
            let now = Instant::now();
            let scans = FIRST_SCANS.map(|after| (now + after, process));
            self.begun.extend(scans);
        }
    }

    /// Schedules the scans of processes that waited before their first instruction, and are
    /// released now. Such processes have used no CPU time.
    pub fn schedule_released(&mut self) {
        let known: Vec<Process> = self.processes.keys().copied().collect();
        for process in known {
            if cpu_ticks(process.pid) == 0 {
                self.schedule_scans(process);
            }
        }
    }

    /// Queues new processes whose scan is due.
    fn queue_due_scans(&mut self) {
        let now = Instant::now();
        let due: Vec<_> = self.begun.extract_if(.., |(at, _)| *at <= now).collect();
        for (_, process) in due {
            self.queue_scan(process);
        }
    }

    /// Adds a dump of a stack whose process or mapping is new. Returns the dump if the capacity is
    /// used up.
    pub fn add_dump(&mut self, dumped: Dumped) -> Option<Dumped> {
        self.queue_scan(dumped.process);
        if let Some(has_dump) = self.wanted.get_mut(&dumped.process) {
            *has_dump = true;
        }
        self.dumps.add(dumped)
    }

    /// Returns whether a dump of this stack waits to be unwound.
    pub fn has_dump(&self, id: u64) -> bool {
        self.dumps.any(|dumped| dumped.id == id)
    }

    /// Continues the pending work. Returns the dumps that it unwound.
    pub fn work(&mut self, symbolizer: &mut Symbolizer) -> Vec<(Dumped, Walk)> {
        let begun = Instant::now();
        self.saved = saved(self.saved, begun - self.worked);
        self.worked = begun;

        self.queue_due_scans();
        self.files.collect(&mut self.kernel, Duration::ZERO);
        while self.saved > begun.elapsed()
            && let Some(process) = self.next_to_scan(Instant::now())
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

    /// Returns how many more dumps programs may send; `None` if the next update is not due.
    pub fn allowance(&mut self) -> Option<i64> {
        if self.allowed.elapsed() < ALLOW_INTERVAL {
            return None;
        }
        self.allowed = Instant::now();
        Some(MAX_DUMPS.saturating_sub(self.dumps.len()) as i64)
    }

    /// Unwinds the remaining dumps. Waits at most 5 s for their tables, and then uses the tables
    /// that are built.
    pub fn finish(&mut self, symbolizer: &mut Symbolizer) -> Vec<(Dumped, Walk)> {
        const LONGEST: Duration = Duration::from_secs(5);
        let begun = Instant::now();
        self.wanted.retain(|_, has_dump| *has_dump);
        while begun.elapsed() < LONGEST
            && let Some(process) = self.next_to_scan(begun)
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

    /// Returns the failures and the total size of the tables, which `-v` prints.
    pub fn notes(&self) -> Vec<String> {
        let (files, bytes) = self.files.size();
        let size = format!("unwind tables: {files} files, {} KiB", bytes.div_ceil(1024));
        let mut notes = vec![size];
        notes.extend_from_slice(self.files.notes.as_slice());
        notes.extend_from_slice(self.notes.as_slice());
        notes
    }

    /// Returns the numbers of processes and files without unwind tables.
    #[must_use]
    pub fn missing(&self) -> Missing {
        Missing {
            crowded_processes: self.crowded_out.len() as u64,
            crowded_files: self.files.crowded_out.len() as u64,
            unread_files: self.files.unread.len() as u64,
        }
    }

    /// Returns the code of a process, if its tables are built.
    pub fn space(&self, process: Process) -> Option<&Space> {
        self.processes.get(&process)?.space.as_ref()
    }

    /// Unwinds a stack in user space, if the tables of its process are built. Also returns the
    /// frames of a runtime that were on the stack.
    pub fn walk(
        &self,
        process: Process,
        registers: Registers,
        leaf_is_exact: bool,
        memory: &mut impl Memory,
    ) -> Option<(Walk, Option<InterpretedFrames>)> {
        let space = self.space(process)?;
        Some(self.walk_in(space, process, registers, leaf_is_exact, memory))
    }

    fn walk_in(
        &self,
        space: &Space,
        process: Process,
        registers: Registers,
        leaf_is_exact: bool,
        memory: &mut impl Memory,
    ) -> (Walk, Option<InterpretedFrames>) {
        let (mode, depth) = (self.mode, self.walking.max_stack);
        let code = ProcessMemory::new(process.pid);
        let layout = space.layout_on_stack();
        let frames = layout.and_then(|layout| {
            let most = CHAIN_DEPTH.min(depth);
            layout.language.code_frames(layout, &code, most)
        });
        let (Some(layout), Some(mut frames)) = (layout, frames) else {
            let walk = walk(registers, leaf_is_exact, mode, space, memory, depth);
            return (walk, None);
        };
        let generated = &mut *frames;
        let walk = walk_through(
            registers,
            leaf_is_exact,
            mode,
            space,
            generated,
            memory,
            depth,
        );
        let chain = frames.into_chain();
        let interpreted = (!chain.links.is_empty()).then(|| InterpretedFrames {
            process,
            layout: Arc::clone(layout),
            chain,
        });
        (walk, interpreted)
    }

    /// Removes and returns the runtimes found since the last call, with their processes.
    pub fn take_runtimes(&mut self) -> Vec<(Process, MappedRuntime)> {
        std::mem::take(&mut self.runtimes)
    }

    /// Returns the layout with which a program read the frames of a runtime.
    pub fn layout(&self, index: u32) -> Option<&Arc<Layout>> {
        self.kernel.layout(index)
    }

    /// Reads the frames that a runtime keeps of a thread that is off the CPU. The thread runs the
    /// code of `process`. Returns `None` if that process has no known runtime, or if the thread
    /// does not belong to it.
    pub fn interpreted_frames(
        &self,
        process: Process,
        owner: &StackOwner,
        stack_pointer: u64,
        memory: &mut impl Memory,
    ) -> Option<InterpretedFrames> {
        let most = CHAIN_DEPTH.min(self.walking.max_stack);
        self.space(process)?
            .readable_runtimes()
            .find_map(|(attached, layout)| {
                let language = layout.language;
                if language.runs_in_first_thread() && owner.is_first == 0 {
                    return None;
                }
                let thread = Thread {
                    pointer: owner.thread_pointer,
                    stack_pointer,
                };
                let chain = language.walk(attached, memory, thread, most);
                (chain.end != End::NoThread).then_some(InterpretedFrames {
                    process: process_of(owner),
                    layout: Arc::clone(layout),
                    chain,
                })
            })
    }

    /// Reads the frames of a runtime for a stack that was dumped before the runtime was known.
    /// `stack_of` returns the ID of the stack with which a task is off the CPU. If that is not the
    /// ID of the dump, the thread has run since. The result then says that its frames were not
    /// read.
    pub fn late_interpreted_frames(
        &self,
        dumped: &Dumped,
        stack_of: impl FnOnce(u64) -> Option<u64>,
    ) -> Option<InterpretedFrames> {
        // The unwind of the dump has read frames that are on the stack.
        let mut layouts = self.space(dumped.process)?.readable_runtimes();
        let (_, layout) = layouts.find(|(_, layout)| !layout.language.is_on_stack())?;
        let owner = &dumped.owner;
        let mut memory = ProcessMemory::new(owner.pid);
        let stack_pointer = dumped.registers.stack_pointer();
        let frames = self.interpreted_frames(dumped.process, owner, stack_pointer, &mut memory);
        if stack_of(owner.task) == Some(dumped.id) {
            return frames;
        }
        Some(InterpretedFrames::not_read(
            process_of(owner),
            Arc::clone(layout),
        ))
    }

    /// Returns the process to scan next at the time `now`.
    fn next_to_scan(&self, now: Instant) -> Option<Process> {
        // Programs limit the number of dumps, but not the number of other reasons for a scan.
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

    /// Reads the mappings of a process, and starts to build their tables.
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
        let is_changed = known
            .space
            .as_ref()
            .is_none_or(|space| space.code() != code);
        // A process that has ended shows no mappings. It keeps its state.
        let awaited = (!code.is_empty() && is_changed).then_some(code);
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

    /// Publishes the processes whose tables are all built. With `at_once`, also publishes the other
    /// processes.
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
            let found = space.runtimes().iter().cloned();
            self.runtimes
                .extend(found.map(|runtime| (*process, runtime)));
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

    /// Unwinds the dumps of processes whose tables are published. With `all`, unwinds all dumps.
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
                let process = process_of(&dumped.owner);
                let (registers, exact) = (dumped.registers, dumped.leaf_is_exact);
                let stack = &mut dumped.stack;
                let (walk, interpreted) = self.walk_in(space, process, registers, exact, stack);
                dumped.interpreted = dumped.interpreted.or(interpreted);
                (dumped, walk)
            })
            .collect()
    }

    /// Frees the tables of processes that have ended or run another program.
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
        // Nothing of an ended process can be read. Its dumps are unwound without a scan.
        self.wanted.retain(|process, _| living.has(process.pid));
        self.files.remove_unused(&mut self.kernel);
    }
}

/// Returns the time that may be spent on scans, from the time left over and the elapsed time.
fn saved(left: Duration, passed: Duration) -> Duration {
    (left + passed / SCAN_SHARE).min(MAX_SAVED)
}

/// Returns the CPU time that a process has used, in clock ticks: `utime` and `stime` of proc(5),
/// which are the 12th and 13th field after the name.
fn cpu_ticks(pid: u32) -> u64 {
    // The file is not text, because the name may be any bytes. The kernel bounds its length.
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks = fields.split(' ').skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests;
