//! Latency of a load from memory. The bounds of unwinds are multiples of this latency: at a sample
//! an unwind looks up tables that no cache holds.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

/// Size of the memory in bytes. It is larger than the caches.
const BYTES: usize = 256 << 20;
const HUGE_PAGE: usize = 2 << 20;
/// Size of a cache line, in bytes.
const LINE: usize = 64;
const LOADS: usize = 200_000;

/// Chain of loads, in which each load waits for the load before it.
pub(crate) struct Loads(Vec<Line>);

#[derive(Clone)]
#[repr(align(64))]
struct Line([usize; LINE / size_of::<usize>()]);

impl Loads {
    /// Fills each line with the index of another line, so that all lines form one cycle (Sattolo's
    /// shuffle).
    pub(crate) fn prepare() -> Loads {
        let mut chain: Vec<Line> = Vec::with_capacity(BYTES / LINE);
        // With small pages half the time of a load would be the look-up of its page.
        let unaligned = chain.as_mut_ptr() as usize % HUGE_PAGE;
        let skipped = (HUGE_PAGE - unaligned) % HUGE_PAGE;
        // SAFETY: the vector has allocated the whole range. The advice changes only the size of its pages,
        // and the kernel may ignore it.
        unsafe {
            let begin = chain.as_mut_ptr().cast::<u8>().add(skipped);
            libc::madvise(begin.cast(), BYTES - HUGE_PAGE, libc::MADV_HUGEPAGE);
        }
        chain.extend((0..BYTES / LINE).map(|line| Line([line; LINE / size_of::<usize>()])));
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for line in (1..chain.len()).rev() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            chain.swap(line, random as usize % line);
        }
        Loads(chain)
    }

    /// Returns the CPU time of one load, in ns.
    pub(crate) fn one_ns(&self) -> f64 {
        let begun = cpu_ns();
        let end = (0..LOADS).fold(0, |at, _| self.0[at].0[0]);
        black_box(end);
        (cpu_ns() - begun) as f64 / LOADS as f64
    }
}

fn cpu_ns() -> i64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
