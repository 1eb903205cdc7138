//! Stacks that programs report. A frame is located in a file when its stack arrives;
//! `assemble/stacks.rs` names it later.

pub(crate) mod interpreted;
mod outcome;
pub(crate) mod processes;

use std::collections::{BTreeSet, HashMap, HashSet};

use bpf::types::{
    InterpretedFunction, MixedStack, ProcessEvent, STACK_MISSED, STACK_NONE, StackEvent,
};
use foldhash::fast::RandomState;
use languages::Layout;
use process::{Living, Process, Shares};
use profile::{Id, StackId, StackTree, Table};
use symbolize::{Location, Sources, Symbolizer};

use crate::record::Detail;
use crate::record::stacks::interpreted::{Extent, Functions};
use crate::record::stacks::processes::Processes;
use unwind_tables::{Depths, InterpretedFrames, MappedRuntime, Walking};

pub(crate) use outcome::{Outcome, WalkEnd};

/// Maximum number of frames that are kept. Stacks share the frames of their callers, and a frame
/// takes 20 bytes.
///
/// Stacks beyond this limit count as missed. A target that forges frame pointers can make every
/// stack new. A single process gets at most three quarters ([`Shares`]).
const MAX_FRAMES: usize = 11 << 20;
/// Capacity that the ID of a stack takes, in frames.
const FRAMES_OF_A_STACK: usize = 4;

/// Maximum number of dumps with frames of a runtime that wait to be unwound. Programs send fewer.
const MAX_DUMPS: usize = 2 * unwind_tables::MAX_DUMPS;

/// User stack that was unwound in user space.
pub(crate) struct UserStack<'a> {
    /// Addresses from leaf to root.
    pub(crate) frames: &'a [u64],
    /// True if the first address is the interrupted instruction, and not a return address.
    pub(crate) is_exact: bool,
    pub(crate) outcome: Option<Outcome>,
    /// Stack pointer at the leaf.
    pub(crate) stack_pointer: u64,
    /// Canonical frame addresses (CFAs), from leaf to root, as far as the unwind knows them.
    pub(crate) cfas: &'a [u64],
    pub(crate) interpreted: Option<&'a InterpretedFrames>,
}

impl<'a> UserStack<'a> {
    /// Makes a stack of which only these addresses are known.
    pub(crate) fn from_frames(frames: &'a [u64], is_exact: bool) -> UserStack<'a> {
        UserStack {
            frames,
            is_exact,
            outcome: None,
            stack_pointer: 0,
            cfas: &[],
            interpreted: None,
        }
    }
}

/// Stack that an ID of a program stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Captured {
    /// The thread had no stack, so there is none.
    Nothing,
    /// The thread had a stack, but it is missing.
    Missed,
    /// The stack was captured.
    Stack(Walked),
}

/// Stack of locations, and the end of its unwind, if it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Walked {
    pub(crate) stack: StackId,
    pub(crate) outcome: Option<Outcome>,
}

/// Stacks that programs have sent.
pub(crate) struct Stacks {
    pub(crate) symbolizer: Symbolizer,
    pub(crate) locations: Table<Location>,
    pub(crate) tree: StackTree<Id<Location>>,
    /// Stacks by ID. Each entry has the process that may use its ID again, or `None` if the ID is
    /// used once.
    ids: HashMap<u64, (Walked, Option<Id<Process>>), RandomState>,
    owners: Table<Process>,
    detail: Detail,
    processes: Processes,
    functions: Functions,
    /// Frames of runtimes for dumps that are not unwound yet, by the ID of the dump.
    dump_frames: HashMap<u64, InterpretedFrames>,
    /// Outcomes that arrived for each stack, one bit for each outcome, and the number of set bits.
    outcomes: Vec<u16>,
    count: usize,
    /// Functions that the leaves of kernel stacks call to sleep, for the leaves that were looked
    /// up.
    pub(crate) sleeps: HashMap<Id<Location>, Location>,
    most_frames: usize,
    /// Number of frames that the stacks of each process take.
    shares: Shares,
    /// Numbers of frames at which the kernel cuts stacks.
    pub(crate) depths: Depths,
    /// True if a stack did not fit into the capacity.
    is_full: bool,
}

impl Stacks {
    pub(crate) fn new() -> Stacks {
        Stacks {
            symbolizer: Symbolizer::new(),
            locations: Table::default(),
            tree: StackTree::default(),
            ids: HashMap::default(),
            owners: Table::default(),
            detail: Detail::Names,
            processes: Processes::default(),
            functions: Functions::default(),
            dump_frames: HashMap::new(),
            outcomes: Vec::new(),
            count: 0,
            sleeps: HashMap::new(),
            most_frames: MAX_FRAMES,
            shares: Shares::default(),
            depths: Depths::from_kernel(&Walking::default()),
            is_full: false,
        }
    }

    /// Returns an empty collection for a profile with this detail.
    pub(crate) fn with_detail(detail: Detail, sources: Sources) -> Stacks {
        let mut stacks = Stacks {
            detail,
            ..Stacks::new()
        };
        stacks.symbolizer.look_up_sources(sources);
        let ask = |addresses: &[u64]| loader::kernel_names(addresses).ok();
        stacks.symbolizer.ask_kernel(ask);
        stacks
    }

    /// Reads the descriptions of these processes, if the profile has processes.
    pub(crate) fn look_up_processes(&mut self, processes: &[Process]) {
        if self.detail == Detail::Addresses {
            for &process in processes {
                self.processes.look_up(process);
            }
        }
    }

    /// Adds the description of a process that a program sent, if the profile has processes.
    pub(crate) fn add_process_event(&mut self, event: &ProcessEvent, arguments: &[u8]) {
        if self.detail == Detail::Addresses {
            self.processes.add_event(event, arguments);
        }
    }

    /// Sets how user stacks are unwound.
    pub(crate) fn set_unwind_mode(&mut self, walking: &Walking) {
        self.depths = Depths::from_kernel(walking);
        self.functions.shows_runtime = walking.shows_runtime;
        self.functions.expected = walking.languages.expected();
    }

    /// Returns lines on the frames of runtimes, for the user.
    pub(crate) fn language_notes(&self) -> Vec<String> {
        self.functions.notes()
    }

    /// Returns the number of processes that exceeded the capacity for descriptions.
    pub(crate) fn undescribed(&self) -> u64 {
        self.processes.left_out()
    }

    /// Adds a stack that a program sent, if the stack is new.
    pub(crate) fn add(&mut self, event: &StackEvent, frames: &[u64]) {
        if self.captured(event.hash).is_some() {
            return;
        }
        let exact = event.leaf_is_exact != 0;
        let process = Process {
            pid: event.pid,
            instance: event.instance,
        };
        let (locations, outcome) = if event.pid == 0 {
            (self.symbolizer.locate_kernel(frames, exact), None)
        } else {
            if self.detail == Detail::Addresses {
                self.processes.look_up(process);
            }
            let outcome = Outcome::from_program(event.walk_end);
            (self.locate(process, frames, exact, outcome), outcome)
        };
        self.keep(event.hash, locations, outcome, Some(process));
    }

    /// Adds a stack with frames of a runtime that a program sent, if the stack is new.
    pub(crate) fn add_mixed(
        &mut self,
        event: &MixedStack,
        interpreted: Option<InterpretedFrames>,
        cfas: &[u64],
    ) {
        let Some(interpreted) = interpreted else {
            return;
        };
        if event.hash == event.native {
            if self.dump_frames.len() < MAX_DUMPS {
                self.dump_frames.insert(event.hash, interpreted);
            }
            return;
        }
        let Some(&(Walked { stack, outcome }, _)) = self.ids.get(&event.native) else {
            return;
        };
        if self.captured(event.hash).is_some() {
            return;
        }
        let process = Process {
            pid: event.pid,
            instance: event.instance,
        };
        let native = self.tree.leaf_first(stack);
        let native: Vec<Location> = native.map(|leaf| self.locations[leaf]).collect();
        let extent = Extent {
            stack_pointer: event.stack_pointer,
            cfas,
            reached_root: outcome.is_some_and(|outcome| outcome.end == WalkEnd::Root),
        };
        let mixed = (self.functions).mix(&native, &extent, &interpreted, &mut self.symbolizer);
        self.keep(event.hash, mixed, outcome, Some(process));
    }

    /// Records the facts about a runtime that was found in a process.
    pub(crate) fn add_runtime(&mut self, runtime: MappedRuntime) {
        self.functions.add_runtime(runtime);
    }

    /// Adds a function that a program sent. `layout` is the layout of its runtime.
    pub(crate) fn add_function(&mut self, event: &InterpretedFunction, layout: &Layout) {
        self.functions.add(event, layout);
    }

    /// Removes and returns the frames of a runtime that a program sent with a dump.
    pub(crate) fn take_frames_of_dump(&mut self, id: u64) -> Option<InterpretedFrames> {
        self.dump_frames.remove(&id)
    }

    /// Adds a user stack under `id`, which one thread uses once.
    pub(crate) fn add_user(&mut self, id: u64, process: Process, user: UserStack<'_>) {
        let UserStack {
            frames,
            is_exact,
            outcome,
            stack_pointer,
            cfas,
            interpreted,
        } = user;
        let mut locations = self.locate(process, frames, is_exact, outcome);
        if let Some(interpreted) = interpreted {
            let extent = Extent {
                stack_pointer,
                cfas,
                reached_root: outcome.is_some_and(|outcome| outcome.end == WalkEnd::Root),
            };
            locations =
                (self.functions).mix(&locations, &extent, interpreted, &mut self.symbolizer);
        }
        self.keep(id, locations, outcome, None);
    }

    fn locate(
        &mut self,
        process: Process,
        frames: &[u64],
        exact: bool,
        outcome: Option<Outcome>,
    ) -> Vec<Location> {
        let mut locations = self.symbolizer.locate(process, frames, exact);
        if outcome.is_none_or(|outcome| outcome.by_frame_pointer) {
            drop_strays(&mut locations);
        }
        locations
    }

    /// Adds a stack with these locations, from leaf to root.
    pub(crate) fn keep(
        &mut self,
        id: u64,
        locations: Vec<Location>,
        outcome: Option<Outcome>,
        owner: Option<Process>,
    ) {
        let before = self.tree.len() + self.ids.len() * FRAMES_OF_A_STACK;
        let most = self.most_frames;
        let may_keep = |frames| match owner {
            Some(process) => self.shares.may_take(process.pid, frames, before, most),
            // Programs limit the number of such stacks.
            None => before + frames <= most,
        };
        // Most stacks fit even if all of their frames are new, and need no count of new frames.
        if !may_keep(locations.len() + FRAMES_OF_A_STACK) {
            let new = self.new_frames(&locations) + FRAMES_OF_A_STACK;
            if !may_keep(new) {
                self.is_full = before + new > most;
                self.shares.refuse();
                return;
            }
        }
        self.is_full = false;
        let frames_before = self.tree.len();
        let (tree, table) = (&mut self.tree, &mut self.locations);
        let root_first = locations.into_iter().rev();
        let stack = tree.add(root_first.map(|location| table.id(location)));
        if let Some(process) = owner {
            let new = self.tree.len() - frames_before;
            self.shares.take(process.pid, new + FRAMES_OF_A_STACK);
        }
        let owner = owner.map(|owner| self.owners.id(owner));
        self.count_outcome(stack, outcome);
        let walked = Walked { stack, outcome };
        self.ids.entry(id).or_insert((walked, owner));
    }

    fn count_outcome(&mut self, stack: StackId, outcome: Option<Outcome>) {
        let bit = outcome.map_or(0, |outcome| {
            1 + 2 * outcome.end as u32 + u32::from(outcome.by_frame_pointer)
        });
        self.outcomes.resize(self.tree.len(), 0);
        let seen = &mut self.outcomes[stack.index()];
        self.count += usize::from(*seen & 1 << bit == 0);
        *seen |= 1 << bit;
    }

    /// Returns the number of frames that this stack would add to the tree.
    fn new_frames(&self, locations: &[Location]) -> usize {
        let mut callers = StackId::EMPTY;
        let mut new = locations.len();
        for location in locations.iter().rev() {
            let leaf = self.locations.get(location);
            let Some(stack) = leaf.and_then(|leaf| self.tree.get(callers, leaf)) else {
                break;
            };
            callers = stack;
            new -= 1;
        }
        new
    }

    /// Returns the stack of an ID, if the stack has arrived. Once the capacity is used up, every
    /// other ID counts as missed.
    pub(crate) fn captured(&self, id: u64) -> Option<Captured> {
        match (id, self.ids.get(&id)) {
            (STACK_NONE, _) => Some(Captured::Nothing),
            (STACK_MISSED, _) => Some(Captured::Missed),
            (_, Some((walked, _))) => Some(Captured::Stack(*walked)),
            (_, None) => self.is_full.then_some(Captured::Missed),
        }
    }

    /// Returns the IDs that no program will use again. They are the IDs that are used once, and the
    /// IDs of programs that have ended. A thread's record may still contain such an ID.
    pub(crate) fn unused(&self, living: &Living) -> impl Iterator<Item = u64> {
        let lives = move |owner: Id<Process>| {
            let process = self.owners[owner];
            living.has(process.pid) && !self.symbolizer.has_been_replaced(process)
        };
        let unused = self
            .ids
            .iter()
            .filter(move |(_, (_, owner))| !owner.is_some_and(lives));
        unused.map(|(id, _)| *id)
    }

    /// Removes these IDs, but not their stacks.
    pub(crate) fn forget(&mut self, ids: &HashSet<u64>) {
        self.ids.retain(|id, _| !ids.contains(id));
        // After many processes have ended, the table is almost empty.
        if self.ids.len() < self.ids.capacity() / 8 {
            self.ids.shrink_to_fit();
        }
        self.is_full = false;
    }

    /// Returns whether a stack was refused, because the capacity or the share of its process was
    /// used up.
    pub(crate) fn has_refused(&self) -> bool {
        self.shares.has_refused()
    }

    /// Removes the functions and shares of processes and programs that have ended.
    pub(crate) fn forget_ended(&mut self, living: &Living) {
        self.shares.forget_ended(living);
        let symbolizer = &self.symbolizer;
        (self.functions)
            .forget(|process| !living.has(process.pid) || symbolizer.has_been_replaced(process));
    }

    /// Removes all IDs, and the index of stacks by frames. No stack may arrive after this.
    pub(crate) fn drop_ids(&mut self) {
        self.ids = HashMap::default();
        self.tree.forget_places();
    }

    /// Returns the descriptions of the processes with the IDs in `wanted`. `kernel_threads`
    /// contains the IDs of kernel threads.
    pub(crate) fn processes(
        &mut self,
        wanted: &BTreeSet<u32>,
        kernel_threads: &BTreeSet<u32>,
    ) -> Vec<profile::Process> {
        match self.detail {
            Detail::Names => Vec::new(),
            Detail::Addresses => {
                std::mem::take(&mut self.processes).into_descriptions(wanted, kernel_threads)
            }
        }
    }

    pub(crate) fn detail(&self) -> Detail {
        self.detail
    }

    /// Returns the number of different user and kernel stacks that programs sent.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the counts of addresses and files that could not be located or named.
    pub(crate) fn losses(&self) -> symbolize::Losses {
        self.symbolizer.losses().clone()
    }
}

/// Keeps only one of the addresses at the root end that are in no code. If a function keeps data in
/// the frame pointer's register, an unwind by frame pointers strays into the data. Such an unwind
/// often runs in a circle until it reaches the maximum depth.
fn drop_strays(locations: &mut Vec<Location>) {
    let code = locations
        .iter()
        .rposition(|location| *location != Location::Unknown)
        .map_or(0, |last| last + 1);
    locations.truncate(code + 1);
}

#[cfg(test)]
mod tests;
