//! Memory of one shard: an array map with rows. This process maps the memory, so programs read the
//! rows as soon as they are written.

use std::ptr::{self, NonNull};

use bpf::types::SHARD_ROWS;
use libbpf_rs::libbpf_sys::{BPF_F_MMAPABLE, bpf_map_create_opts};
use libbpf_rs::{MapHandle, MapType};
use loader::{Context, Result};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::AsFd;

/// Size of a shard, in bytes.
const SIZE: usize = SHARD_ROWS * size_of::<u32>();

/// Rows of a shard that is being filled.
pub(crate) struct ShardMemory(NonNull<u32>);

impl ShardMemory {
    /// Creates a map with the layout of `struct unwind_shard`, and maps its memory.
    pub(crate) fn create() -> Result<(MapHandle, ShardMemory)> {
        let options = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as _,
            map_flags: BPF_F_MMAPABLE,
            ..Default::default()
        };
        let key_size = size_of::<u32>() as u32;
        let map = MapHandle::create(
            MapType::Array,
            Some("unwind_shard"),
            key_size,
            SIZE as u32,
            1,
            &options,
        )
        .context("make a map for unwind rows")?;
        // SAFETY: the mapping is new, and the kernel chooses its address.
        let memory = unsafe {
            mmap(
                ptr::null_mut(),
                SIZE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                map.as_fd(),
                0,
            )
        }
        .map_err(std::io::Error::from)
        .context("map the memory of unwind rows")?;
        let rows = NonNull::new(memory.cast())
            .ok_or_else(|| std::io::Error::other("it is at address 0"))
            .context("map the memory of unwind rows")?;
        Ok((map, ShardMemory(rows)))
    }

    /// Writes rows from index `first` on, until the shard is full.
    pub(crate) fn write(&mut self, first: usize, rows: impl Iterator<Item = u32>) {
        for (index, row) in (first..SHARD_ROWS).zip(rows) {
            // SAFETY: the row is inside the mapping, which is aligned to pages. The write is
            // volatile because programs read the row at the same time.
            unsafe { self.0.add(index).write_volatile(row) };
        }
    }
}

impl Drop for ShardMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping has this size, and nothing else refers to it.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), SIZE) };
    }
}
