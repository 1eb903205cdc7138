//! Histograms of the lengths of spans of time, for one owner or many.
//!
//! Lengths are in ns. The kernel side sorts them into buckets. The width of a bucket is at most
//! a 64th of its lengths, so the middle of a bucket is off by less than 0.8 %.

use std::collections::BTreeMap;

/// `SUB_BUCKET_BITS` of `span_counts.h`: 64 buckets for each power of two.
const SUB_BUCKET_BITS: u32 = 6;
/// `LONGEST_BITS` of `span_counts.h`.
const LONGEST_BITS: u32 = 50;
/// Power of two of a millisecond, in the units of buckets at that scale.
const MILLISECOND_BITS: u32 = 20;

/// Kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Time on a CPU, from the switch to the thread to the switch away.
    Running,
    /// Time off the CPU, from the switch away to the switch to the thread.
    OffCpu,
    /// Time from the switch away to the wake-up.
    Blocked,
    /// Time from the wake-up or preemption to the switch to the thread.
    Runnable,
}

/// Owners by which spans are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// One row for each process.
    Processes,
    /// One row for each thread.
    Threads,
}

/// Unit of the printed powers of two. A bucket begins at each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Buckets count ns: each power of two times 1,000 is the start of a bucket.
    Microseconds,
    /// Buckets count units of 2^-20 ms.
    Milliseconds,
}

impl Scale {
    /// Returns the ns of the unit.
    #[must_use]
    pub fn unit_ns(self) -> u64 {
        match self {
            Scale::Microseconds => 1_000,
            Scale::Milliseconds => 1_000_000,
        }
    }

    /// Returns the bucket of a length in ns: `span_bucket` of `span_counts.h`.
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

    /// Returns the shortest and the longest length in a bucket, in ns.
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

    /// Returns the shortest length in a bucket, in whole units.
    #[must_use]
    pub fn units(self, bucket: u32) -> u64 {
        match self {
            Scale::Microseconds => begin(bucket) / 1_000,
            Scale::Milliseconds => begin(bucket) >> MILLISECOND_BITS,
        }
    }
}

/// Returns the start of a bucket, in the unit that buckets count.
fn begin(bucket: u32) -> u64 {
    let shift = (bucket >> SUB_BUCKET_BITS).saturating_sub(1);
    u64::from(bucket - (shift << SUB_BUCKET_BITS)) << shift
}

/// Content of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Number of spans.
    pub spans: u64,
    /// Sum of the lengths in ns. If only the number of spans is known, each counts with the
    /// middle length.
    pub total_ns: u64,
}

/// Numbers of spans by length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    scale: Scale,
    buckets: BTreeMap<u32, Bucket>,
    spans: u64,
    total_ns: u64,
    longest_ns: u64,
}

impl Histogram {
    /// Returns a histogram without spans.
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

    /// Adds spans to one bucket. The longest of them has `longest_ns`.
    pub fn add_bucket(&mut self, number: u32, bucket: Bucket, longest_ns: u64) {
        let sum = self.buckets.entry(number).or_default();
        sum.spans += bucket.spans;
        sum.total_ns += bucket.total_ns;
        self.spans += bucket.spans;
        self.total_ns += bucket.total_ns;
        self.longest_ns = self.longest_ns.max(longest_ns);
    }

    /// Adds spans by their number in each bucket, the sum of their lengths, and the longest
    /// length.
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

    /// Adds another histogram of the same scale.
    pub fn merge(&mut self, other: &Histogram) {
        let before = self.total_ns;
        for (&number, &bucket) in &other.buckets {
            self.add_bucket(number, bucket, other.longest_ns);
        }
        self.total_ns = before + other.total_ns;
    }

    /// Returns the buckets that contain spans with their numbers, shortest first.
    pub fn buckets(&self) -> impl Iterator<Item = (u32, Bucket)> {
        self.buckets
            .iter()
            .map(|(&number, &bucket)| (number, bucket))
    }

    /// Returns the unit of the powers of two.
    #[must_use]
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Returns the number of spans.
    #[must_use]
    pub fn spans(&self) -> u64 {
        self.spans
    }

    /// Returns the sum of all lengths, in ns.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// Returns the length of the longest span, in ns.
    #[must_use]
    pub fn longest_ns(&self) -> u64 {
        self.longest_ns
    }
}

/// Owner of spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Process or thread ID in the caller's PID namespace; 0 is idle.
    pub id: u32,
    /// Name of the process or thread, if it is known.
    pub comm: Option<String>,
}

/// Spans of one owner, or of all owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The owner; `None` if owners are not separated.
    pub owner: Option<Owner>,
    /// Histogram of the lengths.
    pub histogram: Histogram,
}

/// Spans of one period of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// Kind of the spans.
    pub kind: Kind,
    /// Owners by which spans are separated; `None` for one row of all spans.
    pub apart: Option<Apart>,
    /// Unit of the powers of two.
    pub scale: Scale,
    /// Start of the period, in ns of CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// End of the period, in ns of CLOCK_MONOTONIC.
    pub end_ns: u64,
    /// Owners with spans, in descending order of time; one row if owners are not separated.
    pub rows: Vec<Row>,
}

impl Distribution {
    /// Returns the histogram of all owners.
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
                // At this scale some of the shortest buckets contain no whole ns.
                if first <= end {
                    assert_eq!((scale.bucket(first), scale.bucket(end)), (bucket, bucket));
                    assert!(end - first <= (first / 64), "{scale:?} {bucket}");
                }
                next = end + 1;
            }
        }
    }
}
