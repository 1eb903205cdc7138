//! User stacks that programs take when threads return to a CPU (`include/clock/returns.h`). User
//! space reads the stacks of threads that have not returned when the window ends.

use bpf::ProgramName;
use bpf::types::{PreexistingThread, Returning, STACK_MISSED};
use libbpf_rs::{Link, Map, MapCore, MapFlags, ProgramMut};
use loader::iterators::{self, copy};
use loader::{LoadedObject, OpenObject, Result};

use crate::record::Collector;
use crate::record::session::pre_existing::Reader;

/// Program that takes stacks at returns.
const PROGRAM: ProgramName = bpf::programs::THREAD_IS_BACK;

/// Chooses whether programs take stacks when threads return to a CPU, or when they leave it.
pub(crate) fn configure(object: &mut OpenObject, at_return: bool) -> Result<()> {
    object.set(bpf::constants::STACKS_AT_RETURN, at_return)?;
    object.choose(PROGRAM, at_return)?;
    object.choose(bpf::programs::FIND_UNRETURNED, at_return)
}

/// Programs and maps that take stacks when threads return.
pub(crate) struct Returns<'a> {
    find_unreturned: ProgramMut<'a>,
    returning: Map<'a>,
}

impl<'a> Returns<'a> {
    /// Attaches the program, if it is loaded. Adds its link to the end of `links`, so that it is
    /// dropped last.
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

    /// Reads the stacks of threads that have not returned to a CPU. Callers call this after the
    /// window closed and the open intervals were read. The stack of a thread that was off the CPU
    /// until then has not changed.
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

    /// Returns the intervals of threads that were returning when the programs were detached.
    pub(crate) fn left_over(&self) -> Vec<Returning> {
        let values = self
            .returning
            .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY);
        let values = values.ok().flatten().unwrap_or_default();
        let returning = values.iter().filter_map(|value| copy::<Returning>(value));
        let unreturned = returning.filter(|returning| returning.task != 0);
        let missed = unreturned.map(|mut returning| {
            returning.key.user = STACK_MISSED;
            returning
        });
        missed.collect()
    }
}
