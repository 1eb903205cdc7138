//! Tests that a period begins only if its end is in the future. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::mem::MaybeUninit;

use checks::cpudist::CpudistSkelBuilder;
use checks::load;
use libbpf_rs::ProgramInput;
use rustix::time::{ClockId, clock_gettime};

const SECOND: u64 = 1_000_000_000;

#[test]
fn an_end_that_has_come_is_refused() {
    let mut object = MaybeUninit::uninit();
    let mut parts = load(CpudistSkelBuilder::default(), &mut object, |_| ());
    let time = clock_gettime(ClockId::Monotonic);
    let now = time.tv_sec.cast_unsigned() * SECOND + time.tv_nsec.cast_unsigned();
    let mut begin = |start: u64, end: u64, slot: u64| {
        let mut arguments = [start.to_ne_bytes(), (end << 1 | slot).to_ne_bytes()].concat();
        let input = ProgramInput {
            context_in: Some(&mut arguments),
            ..ProgramInput::default()
        };
        let ran = parts.progs.begin_interval.test_run(input).unwrap();
        let shared = parts.maps.bss_data.as_deref_mut().unwrap();
        (ran.return_value, shared.interval_start, shared.interval)
    };
    // A minute is longer than this test ever loses its CPU.
    let end = now + 60 * SECOND;
    let begun = (0, now, end << 1 | 1);
    assert_eq!(begin(now, end, 1), begun);
    let refused = (1, begun.1, begun.2);
    assert_eq!(begin(end, now - 1, 0), refused);
    assert_eq!(begin(end, now, 0), refused);
    // An end that never comes is in the future.
    assert_eq!(begin(end, u64::MAX >> 1, 0), (0, end, u64::MAX - 1));
}
