//! Reads and empties hash maps.

use std::io;

use libbpf_rs::{MapCore, MapFlags};
use plain::Plain;

use crate::Result;
use crate::error::{Context, Error};
use crate::iterators::copy;

/// Maximum entries per system call. No hash bucket has as many entries.
const BATCH: u32 = 4096;

/// Passes each key and value of a hash map to `receive`. Programs may keep using the map.
pub fn for_each(
    map: &impl MapCore,
    what: &str,
    mut receive: impl FnMut(&[u8], &[u8]),
) -> Result<()> {
    let holds_some = || map.keys().next().is_some();
    let held_some = holds_some();
    // One batch for all entries, because the iterator of the crate ends at a batch that is not
    // full.
    let batch = map
        .lookup_batch(map.max_entries(), MapFlags::ANY, MapFlags::ANY)
        .context(format!("read {what}"))?;
    let mut is_empty = true;
    for (key, value) in batch {
        is_empty = false;
        receive(&key, &value);
    }
    // The iterator also ends at errors.
    if is_empty && held_some && holds_some() {
        Err(unreturned(what))
    } else {
        Ok(())
    }
}

/// Removes every entry of a hash map and passes it to `receive`. Programs may keep filling the map.
/// Entries that they add meanwhile may be among the removed ones.
pub fn take_all<K, V>(map: &impl MapCore, what: &str, mut receive: impl FnMut(K, V)) -> Result<()>
where
    K: Plain + Copy + Default,
    V: Plain + Copy + Default,
{
    // The iterator of the crate ends at errors and at the first batch that is not full. Only an
    // empty map proves that no entry is left.
    while map.keys().next().is_some() {
        let batch = map
            .lookup_and_delete_batch(BATCH, MapFlags::ANY, MapFlags::ANY)
            .context(format!("read {what}"))?;
        let mut is_empty = true;
        for (key, value) in batch {
            is_empty = false;
            if let (Some(key), Some(value)) = (copy(&key), copy(&value)) {
                receive(key, value);
            }
        }
        if is_empty {
            return Err(unreturned(what));
        }
    }
    Ok(())
}

fn unreturned(what: &str) -> Error {
    let source = io::Error::other("the kernel returns none of its entries");
    let action = format!("cannot read {what}");
    Error::System { action, source }
}
