//! Inserts a map into an array of maps without an unnecessary wait.
//!
//! The kernel returns from such an update only when no program can still hold the replaced map
//! (`maybe_wait_bpf_programs` in `kernel/bpf/syscall.c`). On a busy machine that takes seconds.
//! An empty place holds no map that a program could still read, so the new map may be used as
//! soon as it is visible.

use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::Duration;

use libbpf_rs::{Map, MapCore, MapFlags, MapHandle};
use loader::{Context, Result};

/// Puts `map` at `index` of `maps`, where no map is.
pub(crate) fn insert(maps: &Map<'_>, index: u32, map: MapHandle) -> Result<()> {
    /// Interval between checks.
    const PAUSE: Duration = Duration::from_micros(50);
    const WHAT: &str = "add a map of unwind rows";
    let key = index.to_ne_bytes();
    let handle = MapHandle::try_from(maps).context(WHAT)?;
    let waiting = thread::Builder::new().name("insertion".into());
    let waiting = waiting.spawn(move || {
        let value = map.as_fd().as_raw_fd().to_ne_bytes();
        handle.update(&key, &value, MapFlags::ANY)
    });
    let waiting = waiting.context(WHAT)?;
    while !waiting.is_finished() {
        // The lookup returns the map's ID once the map is visible.
        if maps.lookup(&key, MapFlags::ANY).context(WHAT)?.is_some() {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    let failed = || std::io::Error::other("its thread failed");
    let updated = waiting.join().map_err(|_| failed()).context(WHAT)?;
    updated.context(WHAT)
}
