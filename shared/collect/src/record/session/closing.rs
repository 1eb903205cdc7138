//! Closes the thread clock: programs close the open intervals, and every thread gets its account.

use bpf::types::{ClosedInterval, Thread, ThreadEnd};
use bpf::{maps, programs, variables};
use libbpf_rs::{Map, MapCore, MapFlags, ProgramMut};
use loader::iterators::copy;
use loader::maps::{for_each, take_all};
use loader::{Context, LoadedObject, Result, Variable, run_here};

use super::unseen_departures;
use crate::record::account::Account;
use crate::record::timeline::Receiver;

/// Program and maps that close the records of threads (`close_thread()` of
/// `include/stacks/stack_edges.h`).
pub(super) struct Closing<'a> {
    threads: Map<'a>,
    close_record: ProgramMut<'a>,
    /// Key and weight of the last closed interval.
    closed: Variable<'a, ClosedInterval>,
}

impl<'a> Closing<'a> {
    pub(super) fn new(object: &'a LoadedObject) -> Result<Closing<'a>> {
        Ok(Closing {
            threads: object.map(maps::THREADS)?,
            close_record: object.program(programs::CLOSE_RECORD_OF)?,
            closed: object.variable(variables::CLOSED)?,
        })
    }

    /// Closes the record of each thread at `stop`, and passes the intervals that count to `add`. No
    /// program may run any more. Takes the messages of the `timeline` before they fill its buffer.
    /// Returns the number of threads that left a CPU without an event.
    pub(super) fn close(
        &self,
        stop: u64,
        mut timeline: Option<&mut Receiver<'_>>,
        mut add: impl FnMut(&ClosedInterval),
    ) -> Result<u64> {
        let mut tasks = Vec::new();
        let mut unseen = Vec::new();
        for_each(&self.threads, WHAT, |task, record| {
            tasks.extend(copy::<u64>(task));
            let departed = copy(record).and_then(|thread| unseen_departures::settle(thread, stop));
            if let Some(thread) = departed {
                unseen.push((task.to_vec(), replace_start(record, &thread)));
            }
        })?;
        for (task, record) in &unseen {
            let updated = self.threads.update(task, record, MapFlags::ANY);
            updated.context("note that a thread left its CPU")?;
        }
        for some in tasks.chunks(CLOSED_AT_ONCE) {
            for task in some {
                if run_here(&self.close_record, &[*task])? != 0 {
                    add(&self.closed.get());
                }
            }
            if let Some(timeline) = &mut timeline {
                timeline.take()?;
            }
        }
        Ok(unseen.len() as u64)
    }

    /// Returns the accounts of all threads: those with a record that was closed at `stop`, and
    /// those in `ended` and `departed`.
    pub(super) fn take_accounts(
        &self,
        stop: u64,
        ended: &[ThreadEnd],
        departed: Vec<Account>,
    ) -> Result<Vec<Account>> {
        let mut accounts = departed;
        let ended = ended.iter();
        accounts.extend(ended.map(|end| Account::new(&end.thread, end.ended)));
        take_all(&self.threads, WHAT, |_: u64, thread: Thread| {
            accounts.push(Account::new(&thread, stop));
        })?;
        accounts.sort_by_key(|account| (account.id(), account.started_ns()));
        Ok(accounts)
    }
}

/// Records that are closed before the timeline's messages are taken: at most three for each.
const CLOSED_AT_ONCE: usize = 4096;

/// Name of the map in error messages.
const WHAT: &str = "the thread clocks";

/// Returns a copy of `record` in which `thread` replaces the start.
fn replace_start(record: &[u8], thread: &Thread) -> Vec<u8> {
    // SAFETY: the value consists of integers without padding.
    let start = unsafe { plain::as_bytes(thread) };
    let rest = record.get(start.len()..).unwrap_or_default();
    [start, rest].concat()
}
