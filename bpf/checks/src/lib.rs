//! Parts of the BPF programs, which the kernel runs one by one on input that a test makes up.
//! The tests reach cases that no measured program causes, or not at will.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::mem::MaybeUninit;

use bpf::Object;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{OpenObject, ProgramInput, ProgramMut};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

include!(concat!(env!("OUT_DIR"), "/programs.rs"));

/// Loads the parts of `builder` after a call of `configure`. From then on the calling thread
/// stays on one CPU, because many maps are per CPU.
///
/// # Panics
///
/// If the kernel refuses the parts, for example without root.
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

/// Keeps the calling thread on the first CPU that it may use. Returns the CPU's number.
///
/// # Panics
///
/// If the thread may use no CPU, or the system call fails.
pub fn stay_on_a_cpu() -> usize {
    let allowed = sched_getaffinity(None).expect("the CPUs of this thread");
    let first = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu));
    let first = first.expect("a CPU");
    let mut one = CpuSet::new();
    one.set(first);
    sched_setaffinity(None, &one).expect("one CPU for this thread");
    first
}

/// Gives the calling thread the highest priority of the fair scheduler.
///
/// # Panics
///
/// Without root.
pub fn be_preferred() {
    // SAFETY: the call takes no pointers and changes this thread only.
    let set = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

/// Makes the calling thread a real-time thread, which runs before all others on its CPU.
///
/// # Panics
///
/// Without root.
pub fn go_first() {
    let first = libc::sched_param { sched_priority: 1 };
    // SAFETY: the pointer is valid, and the call changes this thread only.
    let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &first) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

/// Returns the total time that the calling thread has run, in ns. The call also brings the
/// scheduler's account up to date.
pub fn time_run() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Run time is never negative.
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Runs a part once on the current CPU.
///
/// # Panics
///
/// If the kernel does not run the part, or its result is not 0.
pub fn run(part: &ProgramMut<'_>) {
    let ran = part.test_run(ProgramInput::default()).expect("run a part");
    assert_eq!(ran.return_value, 0);
}
