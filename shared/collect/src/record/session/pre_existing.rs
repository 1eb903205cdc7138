//! Threads that existed before the window, or that became targets during it without an event of
//! their own.
//!
//! Each of these threads gets a clock. User space unwinds the user stacks of threads off the CPU,
//! because these stacks do not change until the threads run.

use std::collections::HashMap;

use bpf::types::{PreexistingThread, STACK_TO_READ};
use libbpf_rs::{Map, ProgramMut};
use loader::iterators;
use loader::{Result, monotonic_ns};
use process::Process;
use process::ProcessMemory;
use unwind::{End, Walk, walk_frame_pointers};

use crate::record::Collector;
use crate::record::collector::stack_of;
use crate::record::stacks::{Outcome, Stacks, UserStack};
use unwind_tables::{Dumped, InterpretedFrames, ThreadMemory, Unwinder, process_of, registers};

/// Number of stacks after which user space takes messages.
const STACKS_AT_ONCE: usize = 64;

/// User stacks that were read before the window. The key is the task, the value its number of
/// switches and its stack.
#[derive(Default)]
pub(crate) struct EarlyStacks(HashMap<u64, (u64, PreexistingStack)>);

impl EarlyStacks {
    /// Reads the stacks of threads that are off the CPU, and stops at `start`. Callers call this
    /// shortly before the window, so that most stacks are still the same when the window opens.
    /// `iterator` is the program `find_preexisting`.
    pub(crate) fn read(
        iterator: &ProgramMut<'_>,
        collector: &Collector<'_>,
        start: u64,
    ) -> Result<EarlyStacks> {
        let mut reader = Reader::default();
        let mut stacks = EarlyStacks::default();
        for thread in iterators::run::<PreexistingThread>(iterator)? {
            let Some(stack) = reader.read(&thread, collector) else {
                continue;
            };
            if monotonic_ns() >= start {
                break;
            }
            stacks.0.insert(thread.owner.task, (thread.switches, stack));
        }
        Ok(stacks)
    }

    /// Returns the stack of a thread, if the thread has not run since the stack was read.
    fn take(&mut self, thread: &PreexistingThread) -> Option<PreexistingStack> {
        let (switches, stack) = self.0.remove(&thread.owner.task)?;
        (switches == thread.switches).then_some(stack)
    }
}

/// Gives a clock to every thread that has none, right after the window opened. With `early`, also
/// assigns stacks to threads off the CPU. A thread that has not run since gets its early stack;
/// other threads' stacks are read now. `iterator` is the program `find_preexisting`, and `threads`
/// its map of clocks.
pub(crate) fn find_preexisting(
    iterator: &ProgramMut<'_>,
    threads: &Map<'_>,
    early: Option<EarlyStacks>,
    collector: &mut Collector<'_>,
) -> Result<()> {
    let found: Vec<PreexistingThread> = iterators::run(iterator)?;
    let Some(mut early) = early else {
        return Ok(());
    };
    let mut reader = Reader::default();
    for (index, thread) in found.into_iter().enumerate() {
        if index % STACKS_AT_ONCE == STACKS_AT_ONCE - 1 {
            collector.take(None)?;
        }
        let stack = early.take(&thread).or_else(|| {
            let stack = reader.read(&thread, collector)?;
            let id = stack_of(threads, thread.owner.task)?;
            (id & STACK_TO_READ != 0).then(|| stack.with_id(id))
        });
        if let Some(stack) = stack {
            collector.with_stacks(|stacks, unwinder| stack.keep(stacks, unwinder));
        }
    }
    Ok(())
}

/// User stack of a thread that is off the CPU.
pub(crate) enum PreexistingStack {
    Walked {
        id: u64,
        process: Process,
        walk: Walk,
        stack_pointer: u64,
        leaf_is_exact: bool,
        outcome: Option<Outcome>,
        interpreted: Option<InterpretedFrames>,
    },
    /// Copy of a stack whose unwind tables are not built yet.
    Dumped(Dumped),
}

impl PreexistingStack {
    pub(crate) fn with_id(mut self, new_id: u64) -> PreexistingStack {
        let (PreexistingStack::Walked { id, .. } | PreexistingStack::Dumped(Dumped { id, .. })) =
            &mut self;
        *id = new_id;
        self
    }

    pub(crate) fn keep(self, stacks: &mut Stacks, unwinder: Option<&mut Unwinder<'_>>) {
        match (self, unwinder) {
            (
                PreexistingStack::Walked {
                    id,
                    process,
                    walk,
                    stack_pointer,
                    leaf_is_exact,
                    outcome,
                    interpreted,
                },
                _,
            ) => {
                let user = UserStack {
                    frames: &walk.addresses,
                    is_exact: leaf_is_exact,
                    outcome,
                    stack_pointer,
                    cfas: &walk.cfas,
                    interpreted: interpreted.as_ref(),
                };
                stacks.add_user(id, process, user);
            }
            (PreexistingStack::Dumped(dumped), Some(unwinder)) => {
                if let Some(mut dumped) = unwinder.add_dump(dumped) {
                    let Dumped {
                        id,
                        process,
                        registers,
                        leaf_is_exact,
                        ..
                    } = dumped;
                    let addresses =
                        walk_frame_pointers(registers, &mut dumped.stack, stacks.depths.user);
                    let user = UserStack::from_frames(&addresses, leaf_is_exact);
                    stacks.add_user(id, process, user);
                }
            }
            (PreexistingStack::Dumped(_), None) => {}
        }
    }
}

/// Reader of the stacks of threads that are off the CPU.
#[derive(Default)]
pub(crate) struct Reader(HashMap<u32, ProcessMemory>);

impl Reader {
    /// Returns the user stack of a thread; `None` if it has no user stack or is on a CPU.
    pub(crate) fn read(
        &mut self,
        thread: &PreexistingThread,
        collector: &Collector<'_>,
    ) -> Option<PreexistingStack> {
        let registers = registers(&thread.registers);
        let has_stack = registers.instruction_pointer != 0 || registers.stack_pointer() != 0;
        if !has_stack || thread.is_running != 0 {
            return None;
        }
        let memory = self
            .0
            .entry(thread.owner.pid)
            .or_insert_with(|| ProcessMemory::new(thread.owner.pid));
        memory.forget();
        let memory = &mut ThreadMemory {
            process: memory,
            replaced: &thread.replaced_returns,
        };
        let id = thread.owner.task;
        let process = process_of(&thread.owner);
        let leaf_is_exact = thread.leaf_is_exact != 0;
        let stack_pointer = registers.stack_pointer();
        let walked = |walk, outcome, interpreted| PreexistingStack::Walked {
            id,
            process,
            walk,
            stack_pointer,
            leaf_is_exact,
            outcome,
            interpreted,
        };
        collector.with_stacks(|stacks, unwinder| {
            let Some(unwinder) = unwinder else {
                let walk = Walk {
                    addresses: walk_frame_pointers(registers, memory, stacks.depths.user),
                    cfas: Vec::new(),
                    end: End::NoRule,
                    by_frame_pointer: true,
                };
                return Some(walked(walk, None, None));
            };
            if thread.is_32_bit != 0 {
                let walk = Walk {
                    addresses: vec![registers.instruction_pointer],
                    cfas: Vec::new(),
                    end: End::Code32Bit,
                    by_frame_pointer: false,
                };
                let outcome = Outcome::from(&walk);
                return Some(walked(walk, Some(outcome), None));
            }
            let interpreted = unwinder.interpreted_frames(
                process,
                &thread.owner,
                registers.stack_pointer(),
                memory,
            );
            match unwinder.walk(process, registers, leaf_is_exact, memory) {
                Some((walk, on_stack)) if walk.end != End::NoMapping => {
                    let outcome = Outcome::from(&walk);
                    Some(walked(walk, Some(outcome), interpreted.or(on_stack)))
                }
                // The unwind tables, or those of a new mapping, are still missing.
                _ => Some(PreexistingStack::Dumped(Dumped::read(
                    id,
                    thread.owner,
                    registers,
                    leaf_is_exact,
                    interpreted,
                    memory,
                ))),
            }
        })
    }
}
