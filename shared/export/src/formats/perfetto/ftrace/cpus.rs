//! The CPU of each stay. No two stays on a CPU overlap, as Perfetto requires.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::states::{NO_CPU, Stay};

/// Number of CPUs that Perfetto reads (`kMaxCpuCount` of its `ftrace_tokenizer.cc`).
const MAX_CPUS: u32 = 1024;
/// Number of CPUs, of those, that can be real. The others are for stays whose CPU is not known.
pub(in super::super) const MAX_REAL_CPUS: u32 = 960;

/// Gives each stay a CPU, and sorts the stays by CPU and time. A sample in a stay tells its CPU. A
/// stay without a sample is on the CPU of the thread's nearest sample if no other stay is there at
/// that time. Any other is on a CPU from `first_free` on, which no machine has.
pub(super) fn allot(stays: &mut [Stay], first_free: u32) {
    for stay in &mut *stays {
        if stay.cpu >= MAX_REAL_CPUS {
            stay.cpu = NO_CPU;
        }
    }
    // A stay with a sample comes before those that may give way to it.
    stays.sort_unstable_by_key(|stay| (stay.cpu, !stay.is_seen, stay.start_ns, stay.end_ns));
    for of_cpu in stays.chunk_by_mut(|one, other| one.cpu == other.cpu) {
        if of_cpu.first().is_some_and(|stay| stay.cpu != NO_CPU) {
            let seen = of_cpu.partition_point(|stay| stay.is_seen);
            let (seen, nearest) = of_cpu.split_at_mut(seen);
            free_seen(seen);
            free_nearest(seen, nearest);
        }
    }
    stays.sort_unstable_by_key(|stay| (stay.cpu, stay.start_ns, stay.end_ns));
    let free = stays.partition_point(|stay| stay.cpu != NO_CPU);
    place(&mut stays[free..], first_free.min(MAX_REAL_CPUS));
    stays.sort_unstable_by_key(|stay| (stay.cpu, stay.start_ns, stay.end_ns));
}

/// Takes the CPU from stays that overlap one before.
fn free_seen(seen: &mut [Stay]) {
    let mut until_ns = 0;
    for stay in seen {
        if stay.start_ns < until_ns {
            stay.cpu = NO_CPU;
        } else {
            until_ns = stay.end_ns;
        }
    }
}

/// Takes the CPU from stays that overlap one of `seen`, or one before.
fn free_nearest(seen: &[Stay], nearest: &mut [Stay]) {
    let mut seen = seen.iter().filter(|stay| stay.cpu != NO_CPU).peekable();
    let mut until_ns = 0;
    for stay in nearest {
        while seen.next_if(|seen| seen.end_ns <= stay.start_ns).is_some() {}
        let is_taken = seen.peek().is_some_and(|seen| seen.start_ns < stay.end_ns);
        if is_taken || stay.start_ns < until_ns {
            stay.cpu = NO_CPU;
        } else {
            until_ns = stay.end_ns;
        }
    }
}

/// Places stays, which are in the order of their times, on as few CPUs as they need. If they need
/// more than there are, the last has several at once.
fn place(stays: &mut [Stay], first: u32) {
    let mut next = first;
    // Ends of the latest stays, and their CPUs.
    let mut taken: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    // CPUs on which no stay is.
    let mut free: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
    for stay in stays {
        while let Some(Reverse((end_ns, cpu))) = taken.peek().copied() {
            if end_ns > stay.start_ns {
                break;
            }
            taken.pop();
            free.push(Reverse(cpu));
        }
        stay.cpu = match free.pop() {
            Some(Reverse(cpu)) => cpu,
            None if next < MAX_CPUS => {
                next += 1;
                next - 1
            }
            None => MAX_CPUS - 1,
        };
        taken.push(Reverse((stay.end_ns, stay.cpu)));
    }
}
