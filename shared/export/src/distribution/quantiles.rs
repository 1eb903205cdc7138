//! From buckets to an HdrHistogram, which answers for quantiles.

use hdrhistogram::{CreationError, Histogram};

/// More precise than the buckets by far.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Every bucket's spans at their mean length, nanoseconds.
pub(super) fn recorded(spans: &profile::spans::Histogram) -> Result<Histogram<u64>, CreationError> {
    let mut recorded = Histogram::new_with_max(u64::MAX / 2, SIGNIFICANT_DIGITS)?;
    for (_, bucket) in spans.buckets().filter(|(_, bucket)| bucket.spans > 0) {
        recorded.saturating_record_n(bucket.total_ns / bucket.spans, bucket.spans);
    }
    Ok(recorded)
}
