//! A window over all of what the workload `phases` does.

use std::collections::BTreeMap;

use crate::account::stolen_ns;
use crate::idle_exit::{IdleExits, Ways};
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
    /// Its switches out of idle, by thread.
    pub idle_exits: BTreeMap<u32, Ways>,
    /// What the hypervisor took of all CPUs, in nanoseconds.
    pub stolen_ns: u64,
}

/// Attaches a tool to `phases`, which waits for the word, and lets it run. It is
/// blocked before and after, so the accounts are those of the window.
pub fn measure(mut phases: Workload, attach: impl Fn(u32) -> Watch) -> Measured {
    let mut watch = attach(phases.pid());
    let before = accounts_at_rest(phases.pid());
    let stolen = stolen_ns();
    let idle_exits = IdleExits::watch(phases.pid());
    watch.open();
    phases.go();
    phases.wait_done();
    let idle_exits = idle_exits.stop();
    let after = accounts_at_rest(phases.pid());
    let stolen_ns = stolen_ns() - stolen;
    let seen = watch.close();
    let kernel = after
        .into_iter()
        .map(|(tid, account)| (tid, account.since(before[&tid])))
        .collect();
    Measured {
        phases,
        seen,
        kernel,
        idle_exits,
        stolen_ns,
    }
}
