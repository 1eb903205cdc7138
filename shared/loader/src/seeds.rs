//! Threads that were there before the window: each gets a clock, and those off
//! the CPU have their user stack walked from outside, as it will not change
//! until they run.

use std::collections::HashMap;

use bpf::SharedState;
use bpf::types::{STACK_DEPTH, SeededThread, Thread, ThreadState};
use libbpf_rs::{MapCore, MapFlags, MapMut, ProgramMut};
use symbolize::Process;
use unwind::{ProcessMemory, Registers, walk_frame_pointers};

use crate::iterators::{self, copy};
use crate::{Collector, Result};

/// After this many stacks what the program sent meanwhile is taken.
const STACKS_AT_ONCE: usize = 64;

/// User stacks that were read before the window, by task.
#[derive(Default)]
pub struct EarlyStacks(HashMap<u64, EarlyStack>);

struct EarlyStack {
    switches: u64,
    addresses: Vec<u64>,
    leaf_is_exact: bool,
}

impl EarlyStacks {
    /// Reads the stacks of the threads that are off the CPU, as far as that
    /// gets while `is_early`: in the moment before the window, so that most
    /// of them still stand when it opens. `iterator` is the program's
    /// `seed_threads`.
    pub fn read(iterator: &ProgramMut<'_>, is_early: impl Fn() -> bool) -> Result<EarlyStacks> {
        let mut walker = Walker::default();
        let mut stacks = EarlyStacks::default();
        for thread in iterators::run::<SeededThread>(iterator)? {
            let Some(addresses) = walker.walk(&thread) else {
                continue;
            };
            if !is_early() {
                break;
            }
            stacks.0.insert(
                thread.task,
                EarlyStack {
                    switches: thread.switches,
                    leaf_is_exact: thread.leaf_is_exact != 0,
                    addresses,
                },
            );
        }
        Ok(stacks)
    }
}

/// Gives a clock to every thread that has none, right after the window opened,
/// and ties the stacks of those off the CPU, if they are wanted: the early one
/// if it is still the same stop, else one that is read now. `iterator` is the
/// program's `seed_threads`, `threads` its map of clocks.
pub fn seed_threads<State: SharedState>(
    iterator: &ProgramMut<'_>,
    threads: &MapMut<'_>,
    early: Option<EarlyStacks>,
    collector: &mut Collector<'_, '_, State>,
) -> Result<()> {
    let seeded: Vec<SeededThread> = iterators::run(iterator)?;
    let Some(EarlyStacks(mut early)) = early else {
        return Ok(());
    };
    let mut walker = Walker::default();
    for (index, thread) in seeded.into_iter().enumerate() {
        if index % STACKS_AT_ONCE == STACKS_AT_ONCE - 1 {
            collector.take()?;
        }
        let stack = early
            .remove(&thread.task)
            .filter(|stack| stack.switches == thread.switches)
            .map(|stack| (stack.addresses, stack.leaf_is_exact))
            .or_else(|| {
                let stack = walker.walk(&thread)?;
                has_not_run(threads, &thread).then_some((stack, thread.leaf_is_exact != 0))
            });
        if let Some((addresses, exact)) = stack {
            let process = Process {
                pid: thread.pid,
                instance: thread.instance,
            };
            collector
                .with_stacks(|stacks| stacks.add_user(thread.task, process, &addresses, exact));
        }
    }
    Ok(())
}

/// Walks the stacks of threads that are not running.
#[derive(Default)]
struct Walker(HashMap<u32, ProcessMemory>);

impl Walker {
    /// The thread's user stack, leaf first, if it has one and is off the CPU.
    fn walk(&mut self, thread: &SeededThread) -> Option<Vec<u64>> {
        if thread.instruction_pointer == 0 || thread.is_running != 0 {
            return None;
        }
        let memory = self
            .0
            .entry(thread.pid)
            .or_insert_with(|| ProcessMemory::new(thread.pid));
        memory.forget();
        let registers = Registers::new(
            thread.instruction_pointer,
            thread.stack_pointer,
            thread.frame_pointer,
        );
        Some(walk_frame_pointers(registers, memory, STACK_DEPTH))
    }
}

/// Whether the thread is still where it was when its clock started: it may
/// have been woken, but it still has the stack that it went to sleep with.
fn has_not_run(threads: &MapMut<'_>, seeded: &SeededThread) -> bool {
    let key = seeded.task.to_ne_bytes();
    let Ok(Some(bytes)) = threads.lookup(&key, MapFlags::ANY) else {
        return false;
    };
    copy::<Thread>(&bytes)
        .is_some_and(|thread| thread.user == seeded.task && thread.state() != ThreadState::Running)
}
