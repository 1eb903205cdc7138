//! Samples of idle CPUs (`-I`). While other tests run, no CPU is idle.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use systemscope_tests::truth::account::idle_ticks;
use systemscope_tests::{Folded, Tool, Turn, cpus_online};

#[test]
fn idle_is_shown_on_request_only() {
    let _turn = Turn::take();
    let idle = |folded: &Folded| {
        folded
            .comms()
            .iter()
            .any(|comm| comm.starts_with("swapper"))
    };
    let without = Tool::new("oncputime").args("-F 199").folded(0.5);
    assert!(!idle(&without), "{without:#?}");
    let before = idle_ticks();
    let with = Tool::new("oncputime").args("-F 199 -I").folded(2.0);
    // A busy machine is never idle. Some virtual machines hide some idle CPUs, but not all.
    if idle_ticks() - before > 50 * cpus_online() as u64 {
        assert!(idle(&with), "{with:#?}");
    }
    let (one, all) = (2 * 199, 2 * 199 * cpus_online() as u64);
    let total = with.total();
    assert!(
        total * 10 >= one * 8 && total * 100 <= all * 110,
        "{total} of {one} to {all}"
    );
}
