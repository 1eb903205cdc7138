//! What `include/span_counts.h`, `span_intervals.h` and `waiting_spans.h` share
//! with user space.

use plain::Plain;

use crate::cpudist::types as c;

/// `SPAN_BUCKETS`: how many buckets the lengths of spans are sorted into.
pub const BUCKETS: usize = 2880;

/// `SPAN_SLOTS`: how many intervals are counted apart in the kernel.
pub const SLOTS: usize = 2;

/// Value of `span_owner`: all spans together.
pub const OWNER_NONE: u32 = 0;
/// Value of `span_owner`: spans by process.
pub const OWNER_PROCESS: u32 = 1;
/// Value of `span_owner`: spans by thread.
pub const OWNER_THREAD: u32 = 2;

/// Value of `span_kind`: on the CPU.
pub const SPANS_RUNNING: u32 = 0;
/// Value of `span_kind`: off the CPU.
pub const SPANS_OFF_CPU: u32 = 1;
/// Value of `span_kind`: off the CPU, up to the wake-up.
pub const SPANS_BLOCKED: u32 = 2;
/// Value of `span_kind`: waiting for a CPU.
pub const SPANS_RUNNABLE: u32 = 3;

/// `struct span_counts`: the spans that one CPU counted in a slot.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SpanCounts {
    /// All spans together, nanoseconds.
    pub total: u64,
    /// The longest, nanoseconds.
    pub longest: u64,
    /// How many there are in each bucket.
    pub buckets: [u64; BUCKETS],
}

impl Default for SpanCounts {
    fn default() -> Self {
        SpanCounts {
            total: 0,
            longest: 0,
            buckets: [0; BUCKETS],
        }
    }
}

/// `struct span_key`: whose spans, of which length, in which interval.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SpanKey {
    /// The process or thread, in the caller's PID namespace.
    pub owner: u32,
    /// The bucket.
    pub bucket: u16,
    /// Where the interval is counted.
    pub slot: u16,
}

/// `struct span_sum`: what is in a bucket.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanSum {
    /// How many spans.
    pub spans: u64,
    /// How long all of them are together, nanoseconds.
    pub total: u64,
    /// The longest, nanoseconds.
    pub longest: u64,
}

/// `struct recent_sum`: what a CPU has not yet added to the sums of all.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RecentSum {
    /// Whose spans, and of which length.
    pub key: SpanKey,
    /// What they are; 0 spans if there are none.
    pub sum: SpanSum,
}

/// `struct waiting`: a thread that was off the CPU when an interval ended.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Waiting {
    /// The task's address.
    pub task: u64,
    /// The end of the interval, CLOCK_MONOTONIC ns.
    pub end: u64,
    /// When it left the CPU, CLOCK_MONOTONIC ns.
    pub off_since: u64,
    /// When it was woken, CLOCK_MONOTONIC ns; 0 if it is not yet.
    pub woken: u64,
    /// The process or thread, in the caller's PID namespace.
    pub owner: u32,
    unused: u32,
}

// SAFETY: each is repr(C), made of integers only, and any bytes are a value.
unsafe impl Plain for SpanCounts {}
// SAFETY: as above.
unsafe impl Plain for SpanKey {}
// SAFETY: as above.
unsafe impl Plain for SpanSum {}
// SAFETY: as above.
unsafe impl Plain for RecentSum {}
// SAFETY: as above.
unsafe impl Plain for Waiting {}

const _: () = {
    assert!(size_of::<SpanCounts>() == size_of::<c::span_counts>());
    assert!(size_of::<SpanKey>() == size_of::<c::span_key>());
    assert!(size_of::<SpanSum>() == size_of::<c::span_sum>());
    assert!(size_of::<RecentSum>() == size_of::<c::recent_sum>());
    assert!(size_of::<Waiting>() == size_of::<c::waiting>());
};
