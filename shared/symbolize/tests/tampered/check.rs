//! Checks that must pass for any bytes. The fuzz targets use them, too.

use std::fs::File;
use std::io::{Result, Write};
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use symbolize::readers;

/// Maximum size of a name, in bytes. A longer name stays mangled, or is left out.
const LONGEST_NAME: usize = 16 << 10;

/// Reads symbols from `bytes` as from an ELF file, for addresses all over the file.
pub(crate) fn elf(bytes: &[u8]) {
    let step = (bytes.len() / 256).max(1);
    let mut offsets: Vec<u64> = (0..bytes.len() as u64).step_by(step).collect();
    offsets.extend([1 << 32, u64::MAX]);
    let file = file(bytes);
    let (named, cost) = tamper::cost(|| readers::elf(&file, &offsets));
    bounded(cost, bytes.len());
    for (offset, name) in named.unwrap_or_default() {
        assert!(offsets.contains(&offset));
        assert!(!name.is_empty() && name.len() <= LONGEST_NAME);
    }
}

/// Copies the image of an ELF file from memory with these bytes, and reads symbols from the copy.
pub(crate) fn memory_image(bytes: &[u8]) {
    let memory = file(bytes);
    let (image, cost) = tamper::cost(|| readers::memory_image(&memory));
    bounded(cost, bytes.len());
    if let Ok(image) = image {
        let offsets: Vec<u64> = (0..bytes.len() as u64).step_by(64).collect();
        let (_, cost) = tamper::cost(|| readers::elf(&image, &offsets));
        bounded(cost, bytes.len());
    }
}

/// Reads source lines from `bytes` as from an ELF file, for addresses all over the file.
pub(crate) fn sources(bytes: &[u8]) {
    let step = (bytes.len() / 256).max(1);
    let offsets: Vec<u64> = (0..bytes.len() as u64).step_by(step).collect();
    let file = file(bytes);
    let (found, cost) = tamper::cost(|| readers::sources(&file, &offsets));
    bounded(cost, bytes.len());
    for (offset, places) in found.unwrap_or_default() {
        assert!(offsets.contains(&offset));
        assert!(places.iter().all(|(_, line)| *line > 0));
    }
}

/// Reads names from `bytes` as from a perf map.
pub(crate) fn perf_map(bytes: &[u8]) {
    let addresses: Vec<u64> = (0..64)
        .map(|n| 0x7f00_0000_0000 + n * 0x10)
        .chain([0, 1, u64::MAX - 1, u64::MAX])
        .collect();
    let file = file(bytes);
    let (named, cost) = tamper::cost(|| readers::perf_map(&file, &addresses));
    bounded(cost, bytes.len());
    for (address, name) in named.unwrap_or_default() {
        assert!(addresses.contains(&address));
        assert!(!name.is_empty() && name.len() <= LONGEST_NAME);
    }
}

/// Checks that time and memory are in proportion to the size of the file. A constant part is
/// allowed for any file.
pub(crate) fn bounded(cost: tamper::Cost, size: usize) {
    let time = Duration::from_secs(2) + Duration::from_micros(size as u64);
    assert!(cost.time < time, "{cost:?} for {size}");
    assert!(cost.bytes < (64 << 20) + 64 * size, "{cost:?} for {size}");
}

pub(crate) fn file(bytes: &[u8]) -> File {
    let made = || -> Result<File> {
        let mut file = File::from(memfd_create("tampered", MemfdFlags::CLOEXEC)?);
        file.write_all(bytes)?;
        Ok(file)
    };
    made().unwrap_or_else(|error| panic!("no file in memory: {error}"))
}
