//! How long spans of time were: counts by length, for one owner or many.
//!
//! Lengths are nanoseconds, sorted into buckets in the kernel already. A bucket
//! is at most a 64th as wide as what it holds, so a length read back from one is
//! off by less than 0.8 % in the middle.

use std::collections::BTreeMap;

/// `SUB_BUCKET_BITS` of `span_counts.h`: 64 buckets to a power of two.
const SUB_BUCKET_BITS: u32 = 6;
/// `LONGEST_BITS` of `span_counts.h`.
const LONGEST_BITS: u32 = 50;
/// A millisecond is this power of two of the buckets' unit at that scale.
const MILLISECOND_BITS: u32 = 20;

/// What a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From getting a CPU to leaving it.
    Running,
    /// From leaving a CPU to getting one.
    OffCpu,
    /// From leaving a CPU to being woken.
    Blocked,
    /// From being woken or preempted to getting a CPU.
    Runnable,
}

/// Whose spans are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// Those of processes.
    Processes,
    /// Those of threads.
    Threads,
}

/// The unit of which people read powers of two: each begins with a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Buckets are counted from nanoseconds, as 1000 times any power of two is
    /// where a bucket begins.
    Microseconds,
    /// Buckets are counted from parts of 2^20 to the millisecond.
    Milliseconds,
}

impl Scale {
    /// Nanoseconds of the unit.
    #[must_use]
    pub fn unit_ns(self) -> u64 {
        match self {
            Scale::Microseconds => 1_000,
            Scale::Milliseconds => 1_000_000,
        }
    }

    /// The bucket of a length in nanoseconds: `span_bucket` of `span_counts.h`.
    #[must_use]
    pub fn bucket(self, length_ns: u64) -> u32 {
        let longest = (1_u64 << LONGEST_BITS) - 1;
        let length = length_ns.min(longest);
        let length = match self {
            Scale::Microseconds => length,
            Scale::Milliseconds => ((length << 14) / 15_625).min(longest),
        };
        let shift = (length | 1 << SUB_BUCKET_BITS).ilog2() - SUB_BUCKET_BITS;
        (shift << SUB_BUCKET_BITS) + (length >> shift) as u32
    }

    /// The shortest and the longest length in a bucket, nanoseconds.
    #[must_use]
    pub fn bounds_ns(self, bucket: u32) -> (u64, u64) {
        let (first, next) = (begin(bucket), begin(bucket + 1));
        match self {
            Scale::Microseconds => (first, next - 1),
            Scale::Milliseconds => {
                let ns = |units: u64| {
                    let ns = (u128::from(units) * 15_625).div_ceil(1 << 14);
                    u64::try_from(ns).unwrap_or(u64::MAX)
                };
                (ns(first), ns(next) - 1)
            }
        }
    }

    /// The shortest length in a bucket in whole units.
    #[must_use]
    pub fn units(self, bucket: u32) -> u64 {
        match self {
            Scale::Microseconds => begin(bucket) / 1_000,
            Scale::Milliseconds => begin(bucket) >> MILLISECOND_BITS,
        }
    }
}

/// Where a bucket begins, in the unit that buckets are counted from.
fn begin(bucket: u32) -> u64 {
    let shift = (bucket >> SUB_BUCKET_BITS).saturating_sub(1);
    u64::from(bucket - (shift << SUB_BUCKET_BITS)) << shift
}

/// What is in a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// How many spans.
    pub spans: u64,
    /// How long they are together in nanoseconds; where only their number is
    /// known, as if each was of the middle length.
    pub total_ns: u64,
}

/// Spans by length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    scale: Scale,
    buckets: BTreeMap<u32, Bucket>,
    spans: u64,
    total_ns: u64,
    longest_ns: u64,
}

impl Histogram {
    /// No spans.
    #[must_use]
    pub fn new(scale: Scale) -> Histogram {
        Histogram {
            scale,
            buckets: BTreeMap::new(),
            spans: 0,
            total_ns: 0,
            longest_ns: 0,
        }
    }

    /// Adds one span of `length_ns`.
    pub fn add(&mut self, length_ns: u64) {
        let bucket = Bucket {
            spans: 1,
            total_ns: length_ns,
        };
        self.add_bucket(self.scale.bucket(length_ns), bucket, length_ns);
    }

    /// Adds spans of one bucket, the longest of them `longest_ns`.
    pub fn add_bucket(&mut self, number: u32, bucket: Bucket, longest_ns: u64) {
        let sum = self.buckets.entry(number).or_default();
        sum.spans += bucket.spans;
        sum.total_ns += bucket.total_ns;
        self.spans += bucket.spans;
        self.total_ns += bucket.total_ns;
        self.longest_ns = self.longest_ns.max(longest_ns);
    }

    /// Adds spans of which their numbers by bucket are known, how long they are
    /// together, and the longest.
    pub fn add_counts(&mut self, counts: &[u64], total_ns: u64, longest_ns: u64) {
        let before = self.total_ns;
        for (&spans, number) in counts.iter().zip(0..).filter(|(spans, _)| **spans > 0) {
            let (first, last) = self.scale.bounds_ns(number);
            let middle = u64::midpoint(first, last.min(longest_ns));
            let bucket = Bucket {
                spans,
                total_ns: middle.saturating_mul(spans),
            };
            self.add_bucket(number, bucket, longest_ns);
        }
        self.total_ns = before + total_ns;
    }

    /// Adds all of another histogram of the same scale.
    pub fn merge(&mut self, other: &Histogram) {
        let before = self.total_ns;
        for (&number, &bucket) in &other.buckets {
            self.add_bucket(number, bucket, other.longest_ns);
        }
        self.total_ns = before + other.total_ns;
    }

    /// The buckets that hold spans, by number, shortest first.
    pub fn buckets(&self) -> impl Iterator<Item = (u32, Bucket)> {
        self.buckets
            .iter()
            .map(|(&number, &bucket)| (number, bucket))
    }

    /// The unit of the powers of two.
    #[must_use]
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// How many spans.
    #[must_use]
    pub fn spans(&self) -> u64 {
        self.spans
    }

    /// How long all spans are together, nanoseconds.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// The longest span, nanoseconds.
    #[must_use]
    pub fn longest_ns(&self) -> u64 {
        self.longest_ns
    }
}

/// Whose spans they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Process or thread, as the caller's PID namespace names it; 0 is idle.
    pub id: u32,
    /// Its name, where that is known.
    pub comm: Option<String>,
}

/// The spans of one owner, or of all that were measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// `None` where owners are not told apart.
    pub owner: Option<Owner>,
    /// Their lengths.
    pub histogram: Histogram,
}

/// The spans of one interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// What a span is.
    pub kind: Kind,
    /// Whose are told apart, if any.
    pub apart: Option<Apart>,
    /// The unit of the powers of two.
    pub scale: Scale,
    /// When the interval began, CLOCK_MONOTONIC ns.
    pub start_ns: u64,
    /// When it ended, CLOCK_MONOTONIC ns.
    pub end_ns: u64,
    /// The owners that have spans, the one with most time first; just one row
    /// where they are not told apart.
    pub rows: Vec<Row>,
}

impl Distribution {
    /// All owners together.
    #[must_use]
    pub fn sum(&self) -> Histogram {
        let mut sum = Histogram::new(self.scale);
        for row in &self.rows {
            sum.merge(&row.histogram);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALES: [Scale; 2] = [Scale::Microseconds, Scale::Milliseconds];

    #[test]
    fn buckets_follow_each_other_and_hold_what_they_say() {
        for scale in SCALES {
            let last = scale.bucket(u64::MAX);
            assert_eq!(last, 2879);
            let mut next = 0;
            for bucket in 0..=last {
                let (first, end) = scale.bounds_ns(bucket);
                assert_eq!(first, next, "{scale:?} {bucket}");
                // At this scale some of the shortest hold no whole nanosecond.
                if first <= end {
                    assert_eq!((scale.bucket(first), scale.bucket(end)), (bucket, bucket));
                    assert!(end - first <= (first / 64), "{scale:?} {bucket}");
                }
                next = end + 1;
            }
        }
    }
}
