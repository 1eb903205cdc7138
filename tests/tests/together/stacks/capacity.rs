//! More code than the tables can hold. The tools count and report files without tables.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::{self, File};
use std::iter;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Cgroup, Tool, Turn, Workload, WorkloadBuilder};

/// Bytes of addresses that all pages of unwind tables cover. The number of pages is `PAGES` of
/// `shared/unwind_tables/src/kernel_tables.rs`.
const CAPACITY: u64 = 8 << 30;

/// Writes an ELF file whose code takes 4 GiB of addresses. Nearly all of the code is a hole in the
/// file. Two frame descriptions cover 32 bytes each, near the start and near the end of the code.
fn write_wide(path: &Path) {
    const SIZE: u64 = (1 << 32) - 4096;
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut header: Vec<u8> =
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    // Entry, offset of program headers and offset of section headers, followed by flags and sizes.
    header.extend::<Vec<u8>>(words(&[0, 64, 0]));
    header.extend([0, 0, 0, 0, 64, 0, 56, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    let mut add = |kind: u32, flags: u32, offset: u64, size: u64| {
        header.extend([kind, flags].map(u32::to_le_bytes).concat());
        header.extend::<Vec<u8>>(words(&[offset, offset, offset, size, size, 4096]));
    };
    let frames = frames(SIZE);
    add(1, 5, 0, SIZE); // PT_LOAD of code
    add(1, 4, SIZE, frames.len() as u64); // PT_LOAD of the frame descriptions
    add(0x6474_e550, 4, SIZE, 12); // PT_GNU_EH_FRAME
    let file = File::create(path).unwrap();
    file.write_all_at(&header, 0).unwrap();
    file.write_all_at(&frames, SIZE).unwrap();
}

/// Returns `.eh_frame_hdr` without a table, followed by `.eh_frame`. The source is Linux Standard
/// Base Core 5.0, section 10.6.
fn frames(size: u64) -> Vec<u8> {
    let mut frames = vec![1, 0x1b, 0xff, 0xff];
    // `.eh_frame` begins 8 bytes after the start of this field.
    frames.extend(8_u32.to_le_bytes());
    frames.extend([0; 4]);
    let common = b"\0\0\0\0\x01\0\x01\x78\x10\x0c\x07\x08\x90\x01\0\0";
    frames.extend((common.len() as u32).to_le_bytes());
    frames.extend(common);
    for address in [4096, size - 64] {
        let back = frames.len() as u32 + 4 - 12;
        frames.extend(20_u32.to_le_bytes());
        frames.extend(back.to_le_bytes());
        frames.extend([address, 32].map(u64::to_le_bytes).concat());
    }
    frames.extend([0; 4]);
    frames
}

/// Starts a program that maps files as code and has child processes.
fn start(children: usize, files: &[PathBuf], cgroup: Option<&Cgroup>) -> Workload {
    let files = files.iter().map(|file| file.to_str().unwrap().to_owned());
    let arguments: Vec<String> = iter::once(children.to_string()).chain(files).collect();
    let mut mapped = WorkloadBuilder::new("mapped").args(&arguments).start();
    if let Some(cgroup) = cgroup {
        cgroup.take(mapped.pid());
    }
    mapped.go();
    mapped.wait_done();
    mapped
}

fn stderr_with(files: &[PathBuf]) -> String {
    let mapped = start(0, files, None);
    let tool = Tool::new("offcputime").pid(mapped.pid());
    tool.arg("1").run().succeeded().stderr
}

#[test]
fn files_without_room_for_their_tables_are_counted_without_being_asked() {
    let _turn = Turn::share();
    let folder = scratch();
    let numbers = 0..=CAPACITY >> 32;
    let files: Vec<PathBuf> = numbers
        .map(|number| folder.path().join(format!("wide-{number}")))
        .collect();
    for file in &files {
        write_wide(file);
    }
    let said = stderr_with(&files[..1]);
    assert!(!said.contains("unwind tables"), "{said}");
    let said = stderr_with(&files);
    // The number of these files depends on the order in which the tool reads the files.
    let told = "mapped files have no unwind tables, as no capacity was left: choose fewer processes with -p";
    assert!(said.contains(told), "{said}");
}

#[test]
fn a_file_that_gives_no_tables_is_counted_without_being_asked() {
    let _turn = Turn::share();
    let folder = scratch();
    let file = folder.path().join("cut");
    fs::write(&file, b"\x7fELF\x02\x01\x01").unwrap();
    let said = stderr_with(&[file]);
    let told = ": 1 mapped files have no usable unwind tables (-v says why)";
    assert!(said.contains(told), "{said}");
}

#[test]
fn every_process_of_a_large_cgroup_has_unwind_tables() {
    const CHILDREN: usize = 1200;
    let _turn = Turn::share();
    let cgroup = Cgroup::new("large");
    let _mapped = start(CHILDREN, &[], Some(&cgroup));
    let tool = Tool::new("offcputime").arg("--cgroup").arg(cgroup.folder());
    let said = tool.arg("1").run().succeeded().stderr;
    assert!(!said.contains("no capacity"), "{said}");
    assert!(!said.contains("cut short"), "{said}");
}
