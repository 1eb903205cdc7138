//! Emptying hash maps.

use std::io;

use libbpf_rs::{MapCore, MapFlags};
use plain::Plain;

use crate::Result;
use crate::error::{Context, Error};
use crate::iterators::copy;

/// Entries asked for at once; more than any hash bucket will hold.
const BATCH: u32 = 4096;

/// Takes every entry out of a hash map that programs no longer fill, and hands
/// it to `receive`.
pub(crate) fn take_all<K, V>(
    map: &impl MapCore,
    what: &str,
    mut receive: impl FnMut(K, V),
) -> Result<()>
where
    K: Plain + Copy + Default,
    V: Plain + Copy + Default,
{
    loop {
        let batch = map
            .lookup_and_delete_batch(BATCH, MapFlags::ANY, MapFlags::ANY)
            .context(format!("read {what}"))?;
        let mut taken = 0;
        for (key, value) in batch {
            taken += 1;
            if let (Some(key), Some(value)) = (copy(&key), copy(&value)) {
                receive(key, value);
            }
        }
        // The library's iterator ends at the first batch that is not full,
        // and at errors: only an empty map is proof that nothing is left.
        if map.keys().next().is_none() {
            return Ok(());
        }
        if taken == 0 {
            let source = io::Error::other("the kernel returns none of its entries");
            let action = format!("cannot read {what}");
            return Err(Error::System { action, source });
        }
    }
}
