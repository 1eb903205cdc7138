//! The profiler's own frames never show.
//!
//! Reading folded text refuses them everywhere; here they would be likely.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use systemscope_tests::{Folded, Tool, Turn, Workload, cpus_online};

#[test]
fn profilers_at_work_show_none_of_themselves() {
    let _turn = Turn::take();
    let mut naps = Workload::start("naps", &[20, 1]);
    let mut spinners = Workload::start("spinners", &[cpus_online(), 20]);
    naps.go();
    spinners.go();
    // Switches by the ten thousand, each measured by two and sampled by the
    // third; and each of the two has its programs run on top of the other's.
    let off = Tool::new("offcputime").args("-a 2").start();
    let wake = Tool::new("offwaketime").args("-a --chain 4 2").start();
    let on = Tool::new("oncputime").args("-a -F 997 2").start();
    let patience = std::time::Duration::from_secs(20);
    let off = Folded::parse(&off.finish_within(patience).succeeded().stdout);
    let wake = Folded::parse(&wake.finish_within(patience).succeeded().stdout);
    let on = Folded::parse(&on.finish_within(patience).succeeded().stdout);
    assert!(off.under("nap").total() > 0);
    assert!(wake.under("nap").total() > 0);
    assert!(on.under("spin").total() > 0);
}
