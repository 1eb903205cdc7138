//! bcc's filters: maps that other programs pin, fill and change meanwhile, as described in
//! bcc's documentation (`special_filtering.md`).

use std::path::Path;

use libbpf_rs::{MapCore, MapHandle, MapType};

use crate::error::Context;
use crate::{Error, Result};

/// Size of the keys in bytes: IDs of cgroups or mount namespaces.
const KEY_SIZE: u32 = size_of::<u64>() as u32;

/// Opens a pinned map. The type of its values does not matter.
///
/// # Errors
/// There is no map at the path, or it is of another type.
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
