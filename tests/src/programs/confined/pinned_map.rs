//! Pinned BPF maps with sets of IDs, in the form that bcc's tools take.

use std::path::{Path, PathBuf};

use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

use crate::programs::workload::scratch;

/// Pinned BPF map in a BPF file system of its own.
#[derive(Debug)]
pub struct PinnedMap {
    map: MapHandle,
    folder: TempDir,
}

impl PinnedMap {
    /// Makes an empty map of the type that bcc's documents describe.
    pub fn of_ids() -> PinnedMap {
        PinnedMap::new(MapType::Hash, size_of::<u64>() as u32, "idset")
    }

    /// Makes an empty map of any type, with keys of `key_size` bytes.
    ///
    /// # Panics
    ///
    /// Panics if the kernel refuses, for instance without root.
    pub fn new(kind: MapType, key_size: u32, name: &str) -> PinnedMap {
        let options = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as _,
            ..Default::default()
        };
        let map = MapHandle::create(kind, Some(name), key_size, 4, 16, &options);
        let mut map = map.expect("a BPF map, as root");
        let folder = scratch();
        mount("bpf", folder.path(), "bpf", MountFlags::empty(), None).expect("mount bpffs");
        map.pin(folder.path().join("pinned")).expect("pin the map");
        PinnedMap { map, folder }
    }

    /// Returns the path at which the map is pinned.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("pinned")
    }

    /// Returns the directory in which only the map is pinned.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Adds an ID.
    ///
    /// # Panics
    ///
    /// Panics if the map is full.
    pub fn add(&self, id: u64) {
        let added = self.map.update(&id.to_ne_bytes(), &[0; 4], MapFlags::ANY);
        added.expect("add an ID to the map");
    }

    /// Removes an ID.
    ///
    /// # Panics
    ///
    /// Panics if the ID is not in the map.
    pub fn remove(&self, id: u64) {
        self.map
            .delete(&id.to_ne_bytes())
            .expect("an ID in the map");
    }
}

impl Drop for PinnedMap {
    fn drop(&mut self) {
        let _ = unmount(self.folder.path(), UnmountFlags::DETACH);
    }
}
