//! Attaching programs and making room for what they measure.

use libbpf_rs::{Link, OpenMapMut, ProgramMut};

use crate::Result;
use crate::error::Context;
use crate::kernel::{lossy, threads_alive};

/// Clocks for at least this many threads.
const FEWEST_CLOCKS: u32 = 32768;

/// Attaches tracepoint programs; they stay attached as long as the links live.
pub fn attach(programs: &[&ProgramMut<'_>]) -> Result<Vec<Link>> {
    programs
        .iter()
        .map(|program| {
            program
                .attach()
                .context(format!("attach {}", lossy(program.name())))
        })
        .collect()
}

/// Makes room for the clocks of all threads, `threads` being the map of that
/// name: twice as many as are alive now.
pub fn size_thread_map(threads: &mut OpenMapMut<'_>) -> Result<()> {
    let room = threads_alive().saturating_mul(2).max(FEWEST_CLOCKS);
    threads
        .set_max_entries(room)
        .context("size the map of thread clocks")
}
