//! Tests that functions called by kernel code are found from the instructions.
#![allow(clippy::unwrap_used)]

use std::fs;

/// Returns the address of a function in `/proc/kallsyms`.
fn address_of(wanted: &str) -> u64 {
    let list = fs::read_to_string("/proc/kallsyms").unwrap();
    let line = list
        .lines()
        .find(|line| line.split(' ').nth(2) == Some(wanted));
    u64::from_str_radix(line.unwrap().split(' ').next().unwrap(), 16).unwrap()
}

/// schedule_timeout() sleeps by calling schedule(). The test finds this call by the address that it
/// returns to.
#[test]
fn a_call_is_known_by_where_it_returns_to() {
    let (from, called) = (address_of("schedule_timeout"), address_of("schedule"));
    let returns: Vec<u64> = (from + 5..from + 400).collect();
    let calls = loader::kernel_calls(&returns).unwrap();
    assert!(calls.contains(&Some(called)), "{calls:x?}");
    // This address has no readable instructions.
    assert_eq!(loader::kernel_calls(&[8]).unwrap(), [None]);
}
