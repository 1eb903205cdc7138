//! Tests the user stacks of threads that return to a CPU, if the kernel did not show the return.
//! Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::mem::MaybeUninit;

use bpf::types::{STACK_MISSED, StackKey};
use checks::offcputime::{OffcputimeSkel, OffcputimeSkelBuilder};
use checks::{load, run};
use libbpf_rs::MapCore;

/// Returns the user stacks in the keys of the counts.
fn user_stacks(parts: &OffcputimeSkel<'_>) -> Vec<u64> {
    let keys = parts.maps.counts_even.keys().map(|bytes| {
        let mut key = StackKey::default();
        plain::copy_from_bytes(&mut key, &bytes).unwrap();
        key.user
    });
    keys.collect()
}

#[test]
fn a_return_that_was_not_shown_leaves_its_interval_without_a_stack() {
    for (task, left, is_seen) in [(0, 0, true), (0, 1, false), (1, 0, false)] {
        let mut object = MaybeUninit::uninit();
        let mut parts = load(OffcputimeSkelBuilder::default(), &mut object, |_| ());
        let shared = parts.maps.bss_data.as_deref_mut().unwrap();
        shared.returning_task = task;
        shared.left_since = left;
        run(&parts.progs.come_back);
        let stacks = user_stacks(&parts);
        assert_eq!(stacks.len(), 1, "{task} {left}: {stacks:?}");
        assert_eq!(stacks[0] != STACK_MISSED, is_seen, "{task} {left}");
    }
}
