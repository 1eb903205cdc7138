//! What a load from memory takes: the unit of what walks may cost, as they look
//! up tables that samples find in no cache.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

/// More than caches hold.
const BYTES: usize = 256 << 20;
const HUGE_PAGE: usize = 2 << 20;
/// A line of the cache.
const LINE: usize = 64;
const LOADS: usize = 200_000;

/// Loads that each wait for the one before, in nanoseconds of CPU time.
pub(crate) struct Loads(Vec<Line>);

#[derive(Clone)]
#[repr(align(64))]
struct Line([usize; LINE / size_of::<usize>()]);

impl Loads {
    /// Each line holds the number of another one, one circle through all of them:
    /// Sattolo's shuffle.
    pub(crate) fn prepare() -> Loads {
        let mut chain: Vec<Line> = Vec::with_capacity(BYTES / LINE);
        // With small pages half of a load is the look-up of its page.
        let unaligned = chain.as_mut_ptr() as usize % HUGE_PAGE;
        let skipped = (HUGE_PAGE - unaligned) % HUGE_PAGE;
        // SAFETY: the range is in what the vector has allocated, and the advice
        // changes nothing but the size of its pages. It need not be heeded.
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

    /// How long one takes.
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
