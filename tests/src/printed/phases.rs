//! A window over all of what the workload `phases` does.

use std::collections::BTreeMap;

use crate::truth::account::stolen_ns;
use crate::truth::wake_ups::{Delays, WakeUps};
use crate::{Account, Seen, Watch, Workload, accounts_at_rest};

/// What was seen in it, and what the kernel booked.
#[derive(Debug)]
pub struct Measured {
    /// The program, which is done.
    pub phases: Workload,
    /// What the tool saw.
    pub seen: Seen,
    /// The kernel's account, by thread.
    pub kernel: BTreeMap<u32, Account>,
    /// What the threads' wake-ups took.
    pub wake_ups: BTreeMap<u32, Delays>,
    /// What the hypervisor took of all CPUs, in nanoseconds.
    pub stolen_ns: u64,
}

/// Attaches a tool to `phases`, which waits for the word, and lets it run. It is
/// blocked before and after, so the accounts are those of the window.
pub fn measure(mut phases: Workload, attach: impl Fn(u32) -> Watch) -> Measured {
    let mut watch = attach(phases.pid());
    let before = accounts_at_rest(phases.pid());
    let wake_ups = WakeUps::watch(phases.pid());
    let stolen = stolen_ns();
    watch.open();
    phases.go();
    phases.wait_done();
    let after = accounts_at_rest(phases.pid());
    let stolen_ns = stolen_ns() - stolen;
    let wake_ups = wake_ups.stop();
    let seen = watch.close();
    let kernel = after
        .into_iter()
        .map(|(tid, account)| (tid, account.since(before[&tid])))
        .collect();
    Measured {
        phases,
        seen,
        kernel,
        wake_ups,
        stolen_ns,
    }
}
