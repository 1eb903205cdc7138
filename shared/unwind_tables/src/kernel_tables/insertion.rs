//! Putting a map into an array of maps without waiting where nobody has to.
//!
//! The kernel returns from such an update only when no program can still hold
//! what was there before (`maybe_wait_bpf_programs` in `kernel/bpf/syscall.c`),
//! which on a busy machine takes seconds. Where nothing was there before, the
//! new map may be used as soon as it can be seen.

use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::Duration;

use libbpf_rs::{Map, MapCore, MapFlags, MapHandle};
use loader::{Context, Result};

/// Puts `map` into the place `index` of `maps`, which is empty.
pub(crate) fn insert(maps: &Map<'_>, index: u32, map: MapHandle) -> Result<()> {
    /// Between two looks.
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
        // The map's ID, once it is there.
        if maps.lookup(&key, MapFlags::ANY).context(WHAT)?.is_some() {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    let failed = || std::io::Error::other("its thread failed");
    let updated = waiting.join().map_err(|_| failed()).context(WHAT)?;
    updated.context(WHAT)
}
