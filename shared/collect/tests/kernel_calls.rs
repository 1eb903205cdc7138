//! Functions that kernel functions call, by their instructions.
#![allow(clippy::unwrap_used)]

use std::fs;

/// Returns the address of a function in the kernel's list.
fn address_of(wanted: &str) -> u64 {
    let list = fs::read_to_string("/proc/kallsyms").unwrap();
    let line = list
        .lines()
        .find(|line| line.split(' ').nth(2) == Some(wanted));
    u64::from_str_radix(line.unwrap().split(' ').next().unwrap(), 16).unwrap()
}

/// Finds a call by the address that it returns to: schedule_timeout() sleeps by calling
/// schedule().
#[test]
fn a_call_is_known_by_where_it_returns_to() {
    let (from, called) = (address_of("schedule_timeout"), address_of("schedule"));
    let returns: Vec<u64> = (from + 5..from + 400).collect();
    let calls = loader::kernel_calls(&returns).unwrap();
    assert!(calls.contains(&Some(called)), "{calls:x?}");
    // No instruction can be read at this address.
    assert_eq!(loader::kernel_calls(&[8]).unwrap(), [None]);
}
