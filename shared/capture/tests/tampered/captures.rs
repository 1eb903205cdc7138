//! Checks on a capture of arbitrary bytes. The fuzz target also uses these checks.

use std::time::Duration;

use capture::{MAGIC, VERSION, read_what_is_whole};
use profile::Profile;

/// Reads `bytes` as a capture, and as the uncompressed content of one.
pub(crate) fn check(bytes: &[u8]) {
    let packed = zstd::encode_all(bytes, 1).expect("memory");
    let capture = [&MAGIC[..], &[VERSION], &packed].concat();
    for bytes in [bytes, &capture] {
        let (read, cost) = tamper::cost(|| read_what_is_whole(bytes));
        assert!(cost.time < Duration::from_secs(2), "{cost:?}");
        for partial in read.into_iter().flatten() {
            check_references(&partial.profile);
        }
    }
    let (_, cost) = tamper::cost(|| read_what_is_whole(&capture[..]));
    // A sample takes at least ten bytes in the file, and 150 bytes in memory with its entry in the
    // hash table.
    assert!(cost.bytes < (1 << 20) + 256 * bytes.len(), "{cost:?}");
}

/// Checks that every reference points to an existing row.
fn check_references(profile: &Profile) {
    for (sample, _) in profile.values() {
        let _ = &profile.names[sample.comm];
        let wakers = sample.wakers.map(|wakers| profile.wakers[wakers].iter());
        let stacks = wakers.into_iter().flatten().map(|waker| waker.stack);
        for stack in stacks.chain([sample.stack]) {
            for part in [stack.user, stack.kernel] {
                let names = profile.frames_of(part).map(|frame| profile.name(frame));
                assert!(names.count() < profile.stacks.len());
            }
        }
    }
    let is_there = |sample| profile.samples.row(sample).is_some();
    for interval in &profile.times.intervals {
        assert!(interval.sample.is_none_or(is_there));
        assert_eq!(interval.end_ns() - interval.start_ns, interval.length_ns());
    }
    for timed in &profile.times.timed_samples {
        assert!(is_there(timed.sample));
    }
    for (place, span) in profile.times.request_spans.iter().enumerate() {
        let _ = &profile.names[span.name];
        assert!(span.start_ns <= span.end_ns);
        assert!(span.parent.is_none_or(|parent| parent.index() < place));
    }
    let _ = profile.check_times();
}
