//! User stacks that programs take when threads are back on a CPU: `include/clock/returns.h`. For
//! threads that are still away when the window ends, user space reads the stacks.

use bpf::ProgramName;
use bpf::types::{PreexistingThread, Returning, STACK_MISSED, StackKey, Tally};
use libbpf_rs::{Link, Map, MapCore, MapFlags, ProgramMut};
use loader::iterators::{self, copy};
use loader::{LoadedObject, OpenObject, Result};

use crate::record::Collector;
use crate::record::session::pre_existing::Reader;

/// Program that takes the stacks.
const PROGRAM: ProgramName = bpf::programs::THREAD_IS_BACK;

/// Chooses whether stacks are taken when threads return, or when they leave the CPU.
pub(crate) fn configure(object: &mut OpenObject, at_return: bool) -> Result<()> {
    object.set(bpf::constants::STACKS_AT_RETURN, at_return)?;
    object.choose(PROGRAM, at_return)?;
    object.choose(bpf::programs::FIND_UNRETURNED, at_return)
}

/// Maps and programs that take stacks at the return of threads.
pub(crate) struct Returns<'a> {
    find_unreturned: ProgramMut<'a>,
    returning: Map<'a>,
}

impl<'a> Returns<'a> {
    /// Attaches the program, if it is chosen. The program's link is added to `links` last, so
    /// that it is dropped last.
    pub(crate) fn attach(object: &'a LoadedObject, links: &mut Vec<Link>) -> Result<Option<Self>> {
        if !object.is_chosen(PROGRAM)? {
            return Ok(None);
        }
        links.extend(object.attach(&[PROGRAM])?);
        Ok(Some(Returns {
            find_unreturned: object.program(bpf::programs::FIND_UNRETURNED)?,
            returning: object.map(bpf::maps::RETURNING_HERE)?,
        }))
    }

    /// Reads the stacks of the threads that have not returned to a CPU. Call it after the window
    /// closed and the open intervals were read. If a thread was away until its record was read,
    /// its stack is still the same.
    pub(crate) fn read_stacks(&self, collector: &mut Collector<'_>) -> Result<()> {
        let mut reader = Reader::default();
        for thread in iterators::run::<PreexistingThread>(&self.find_unreturned)? {
            if let Some(stack) = reader.read(&thread, collector) {
                let stack = stack.with_id(thread.stack);
                collector.with_stacks(|stacks, unwinder| stack.keep(stacks, unwinder));
            }
        }
        Ok(())
    }

    /// Returns the intervals of threads that were just returning when the programs were detached.
    pub(crate) fn left_over(&self) -> Vec<(StackKey, Tally)> {
        let values = self
            .returning
            .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY);
        let values = values.ok().flatten().unwrap_or_default();
        let returning = values.iter().filter_map(|value| copy::<Returning>(value));
        returning
            .filter(|returning| returning.task != 0)
            .map(
                |Returning {
                     mut key, weight, ..
                 }| {
                    key.user = STACK_MISSED;
                    (key, weight)
                },
            )
            .collect()
    }
}
