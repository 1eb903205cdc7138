//! Converts buckets to an HdrHistogram, which computes quantiles.

use hdrhistogram::{CreationError, Histogram};

/// Significant decimal digits of the HdrHistogram, which is far more precise than the buckets.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Records every bucket's spans at their mean length, in ns.
pub(super) fn recorded(spans: &profile::spans::Histogram) -> Result<Histogram<u64>, CreationError> {
    let mut recorded = Histogram::new_with_max(u64::MAX / 2, SIGNIFICANT_DIGITS)?;
    for (_, bucket) in spans.buckets().filter(|(_, bucket)| bucket.spans > 0) {
        recorded.saturating_record_n(bucket.total_ns / bucket.spans, bucket.spans);
    }
    Ok(recorded)
}
