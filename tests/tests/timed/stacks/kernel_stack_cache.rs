//! Cached kernel stacks equal the stacks of the kernel's unwinder. Both are captured for every wait
//! on the machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use bpf::{VariableName, variables};
use loader::{Kernel, LoadedObject, OpenObject, Targets};
use systemscope_tests::{Turn, Workload};

/// Time during which cache hits are counted.
const WINDOW: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(60);
/// Minimum number of cache hits.
const ENOUGH: u64 = 20_000;

/// Loads offcputime's BPF programs for every thread. They capture only kernel stacks, and unwind
/// each of them.
fn load() -> LoadedObject {
    let kernel = Kernel::probe().expect("the kernel's BTF");
    let mut object = OpenObject::new(&bpf::offcputime::OBJECT).expect("an object");
    let everything = Targets::new(vec![], vec![]);
    let configured = everything
        .configure(&mut object, &kernel)
        .and_then(|()| object.set(bpf::constants::SWITCH_ARGUMENTS, kernel.switch_arguments))
        .and_then(|()| object.set(bpf::constants::WANT_USER_STACKS, false))
        .and_then(|()| object.set(bpf::constants::UNWIND_EVERY_KERNEL_STACK, true));
    configured.expect("constants");
    let object = object.load().expect("load, as root");
    everything.fill(&object, &kernel).expect("targets");
    object
}

#[test]
#[ignore = "holds seconds of kernel stacks against another tool's"]
fn what_is_cached_is_what_the_kernel_finds() {
    let _turn = Turn::share();
    let mut workload = Workload::plain("waits");
    let object = load();
    let links = object
        .attach(&[bpf::programs::SCHED_SWITCH, bpf::programs::SCHED_WAKING])
        .unwrap();
    object.variable(variables::WINDOW_START).unwrap().set(1_u64);
    let count = |name: VariableName<u64>| object.variable(name).unwrap().get();
    workload.go();
    let start = Instant::now();
    while start.elapsed() < WINDOW
        || count(variables::KERNEL_CACHE_HITS_RIGHT) < ENOUGH && start.elapsed() < PATIENCE
    {
        sleep(Duration::from_millis(50));
    }
    drop(links);

    let [right, wrong, misses] = [
        variables::KERNEL_CACHE_HITS_RIGHT,
        variables::KERNEL_CACHE_HITS_WRONG,
        variables::KERNEL_CACHE_MISSES,
    ]
    .map(count);
    println!("{right} stacks were cached right, {wrong} wrong, {misses} not at all");
    assert_eq!(wrong, 0);
    assert!(right >= ENOUGH, "only {right} stacks were cached");
    assert!(right > misses, "{right} were cached, {misses} were not");
}

/// Returns the address of a kernel symbol.
fn address_of(symbol: &str) -> u64 {
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap();
    let line = symbols.lines().find(|line| line.ends_with(symbol));
    let address = line.and_then(|line| line.split(' ').next());
    u64::from_str_radix(address.expect(symbol), 16).unwrap()
}

/// The scheduler's code is no larger than `SCHEDULER_CODE` in `kernel_stack_cache.h`.
#[test]
fn the_schedulers_code_is_no_larger_than_is_taken_for_it() {
    let from = address_of(" __sched_text_start").min(address_of(" __lock_text_start"));
    let to = address_of(" __sched_text_end").max(address_of(" __lock_text_end"));
    assert!(from > 0, "the kernel hides the addresses of its symbols");
    println!("{} bytes", to - from);
    assert!(to - from < 128 << 10, "{} bytes", to - from);
}
