//! Parts of the BPF programs, each run by itself by the kernel on what a test makes
//! up, where no program that is measured brings it about, or not at will.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::mem::MaybeUninit;

use bpf::Object;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{OpenObject, ProgramInput, ProgramMut};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

include!(concat!(env!("OUT_DIR"), "/programs.rs"));

/// Loads the parts that `builder` is about after `configure`, for a thread that from
/// now on has one CPU alone: much is kept for each.
///
/// # Panics
///
/// When the kernel refuses them, as without root.
pub fn load<'obj, Builder: SkelBuilder<'obj>>(
    builder: Builder,
    object: &'obj mut MaybeUninit<OpenObject>,
    configure: impl FnOnce(&mut Builder::Output),
) -> <Builder::Output as OpenSkel<'obj>>::Output {
    stay_on_a_cpu();
    let mut open = builder.open(object).expect("open the parts");
    configure(&mut open);
    open.load().expect("load the parts, as root")
}

/// Keeps this thread on the first CPU that it may have. Which one that is.
///
/// # Panics
///
/// When there is none.
pub fn stay_on_a_cpu() -> usize {
    let allowed = sched_getaffinity(None).expect("the CPUs of this thread");
    let first = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu));
    let first = first.expect("a CPU");
    let mut one = CpuSet::new();
    one.set(first);
    sched_setaffinity(None, &one).expect("one CPU for this thread");
    first
}

/// Has this thread go before most others on its CPU.
///
/// # Panics
///
/// Without root.
pub fn be_preferred() {
    // SAFETY: a system call without pointers, about this thread.
    let set = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

/// Has this thread go before all others on its CPU, by a scheduler of its own.
///
/// # Panics
///
/// Without root.
pub fn go_first() {
    let first = libc::sched_param { sched_priority: 1 };
    // SAFETY: this thread, and a valid pointer.
    let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &first) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

/// How long this thread has run in all its life, in ns: the scheduler's own account, which
/// it brings up to date for whoever asks.
pub fn time_run() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // What has been run is never negative.
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Runs a part once, here and now.
///
/// # Panics
///
/// When the kernel does not run it.
pub fn run(part: &ProgramMut<'_>) {
    let ran = part.test_run(ProgramInput::default()).expect("run a part");
    assert_eq!(ran.return_value, 0);
}
