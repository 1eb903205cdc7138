//! bcc's filters: maps that other programs pin, fill and change while a tool runs
//! (`special_filtering.md` in bcc's documentation).

use std::path::Path;

use libbpf_rs::{MapCore, MapHandle, MapType};

use crate::error::Context;
use crate::{Error, Result};

/// Size of a key, in bytes. A key is the ID of a cgroup or of a mount namespace.
const KEY_SIZE: u32 = size_of::<u64>() as u32;

/// Opens a pinned map, with values of any type.
///
/// # Errors
/// No map is pinned at the path, or the map is of another type.
pub(super) fn open(path: &Path) -> Result<MapHandle> {
    let shown = path.display();
    let map = MapHandle::from_pinned_path(path)
        .context(format!("open `{shown}` as a BPF map that is pinned there"))?;
    match (map.map_type(), map.key_size()) {
        (MapType::Hash | MapType::LruHash, KEY_SIZE) => Ok(map),
        _ => Err(Error::Unsupported(format!(
            "`{shown}` is no BPF hash map with keys of {KEY_SIZE} bytes: create one with `bpftool map create {shown} type hash key {KEY_SIZE} value 8 entries 128 name ids`"
        ))),
    }
}
