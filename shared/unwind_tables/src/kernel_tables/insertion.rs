//! Inserts a map into an array of maps without an unnecessary wait.
//!
//! The kernel returns from such an update only after no program can still use the replaced map
//! (`maybe_wait_bpf_programs` in `kernel/bpf/syscall.c`). This takes seconds on a busy machine. An
//! empty place has no map that a program could use. The new map may therefore be used as soon as it
//! is visible.

use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::Duration;

use libbpf_rs::{Map, MapCore, MapFlags, MapHandle};
use loader::{Context, Result};

/// Puts `map` at `index` of `maps`. The place must be empty.
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
        // The lookup returns the ID of the map once the map is visible.
        if maps.lookup(&key, MapFlags::ANY).context(WHAT)?.is_some() {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    let failed = || std::io::Error::other("its thread failed");
    let updated = waiting.join().map_err(|_| failed()).context(WHAT)?;
    updated.context(WHAT)
}
