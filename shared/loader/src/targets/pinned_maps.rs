//! bcc's filters: maps that somebody else pins, fills and changes while they are used, as
//! bcc's documentation (`special_filtering.md`) describes them.

use std::path::Path;

use libbpf_rs::{MapCore, MapHandle, MapType};

use crate::error::Context;
use crate::{Error, Result};

/// What the keys are: IDs of cgroups or mount namespaces, in bytes.
const KEY_SIZE: u32 = size_of::<u64>() as u32;

/// Opens one. What its values are does not matter.
///
/// # Errors
/// There is none, or it is of another kind.
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
