//! User stacks that programs take when threads are back: `include/clock/returns.h`. Of the
//! threads that are not back when the window ends they are read from outside.

use bpf::ProgramName;
use bpf::types::{PreexistingThread, Returning, STACK_MISSED, StackKey, Tally};
use libbpf_rs::{Link, Map, MapCore, MapFlags, ProgramMut};
use loader::iterators::{self, copy};
use loader::{LoadedObject, OpenObject, Result};

use crate::record::Collector;
use crate::record::session::pre_existing::Reader;

/// The program that takes them.
const PROGRAM: ProgramName = bpf::programs::THREAD_IS_BACK;

/// Has stacks taken when threads are back, or when they leave.
pub(crate) fn configure(object: &mut OpenObject, at_return: bool) -> Result<()> {
    object.set(bpf::constants::STACKS_AT_RETURN, at_return)?;
    object.choose(PROGRAM, at_return)?;
    object.choose(bpf::programs::FIND_UNRETURNED, at_return)
}

/// What takes stacks when threads are back.
pub(crate) struct Returns<'a> {
    find_unreturned: ProgramMut<'a>,
    returning: Map<'a>,
}

impl<'a> Returns<'a> {
    /// Attaches the program, where stacks are taken so. `links` are those of the others:
    /// this one is to be dropped last.
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

    /// Reads the stacks of the threads that are not back. To be called after the window closed, and after what is open then was read: of a
    /// thread that was away all the time until its record is read, the stack still stands.
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

    /// The intervals of threads that were just on their way back when the programs were
    /// detached.
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
