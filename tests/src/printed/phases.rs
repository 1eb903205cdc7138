//! A window over the whole run of the workload `phases`.

use std::collections::BTreeMap;

use crate::truth::account::stolen_ns;
use crate::truth::wake_ups::{Delays, WakeUps};
use crate::{Account, Seen, Watch, Workload, accounts_at_rest};

/// Results of the window, and the kernel's figures for comparison.
#[derive(Debug)]
pub struct Measured {
    /// The workload, which has ended its phases.
    pub phases: Workload,
    /// Output of the tool.
    pub seen: Seen,
    /// The kernel's account in the window, by TID.
    pub kernel: BTreeMap<u32, Account>,
    /// Delays of the threads' wake-ups, by TID.
    pub wake_ups: BTreeMap<u32, Delays>,
    /// Time that the hypervisor took from all CPUs, in ns.
    pub stolen_ns: u64,
}

/// Attaches a tool to `phases`, which waits for its start command, and then sends this command.
/// `phases` is blocked before and after its run, so its accounts cover exactly the window.
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
