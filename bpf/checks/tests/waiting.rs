//! Tests spans off the CPU around a period's edges. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::mem::MaybeUninit;

use bpf::types::{RecentSum, SpanKind, SpanOwner, Waiting};
use checks::cpudist::CpudistSkelBuilder;
use checks::{load, run};
use libbpf_rs::{MapCore, MapFlags};

const START: u64 = 1_000_000;
const END: u64 = 2_000_000;

/// Result of a wait: its length in the measured period, its length in the next period, and
/// whether user space must count a part.
#[derive(Debug, PartialEq, Eq)]
struct Counted {
    inside: u64,
    after: u64,
    noted: bool,
}

/// Counts a wait that began at `since`, with the period from [`START`] to [`END`] as the current
/// period.
fn counted(kind: SpanKind, since: u64, blocked: u64, runnable: u64) -> Counted {
    let mut object = MaybeUninit::uninit();
    let mut parts = load(CpudistSkelBuilder::default(), &mut object, |open| {
        let config = open.maps.rodata_data.as_deref_mut().unwrap();
        config.span_kind.0 = kind.0;
        config.span_owner.0 = SpanOwner::OWNER_THREAD.0;
    });
    let shared = parts.maps.bss_data.as_deref_mut().unwrap();
    shared.interval_start = START;
    shared.interval = END << 1 | 1;
    shared.clock.tid = 7;
    shared.clock.off_since = since;
    shared.clock.off_blocked = blocked;
    shared.wait_blocked = blocked;
    shared.wait_runnable = runnable;
    run(&parts.progs.end_wait);

    let in_slot = |slot: u32| -> u64 {
        let places = parts
            .maps
            .recent_sums
            .lookup_percpu(&slot.to_ne_bytes(), MapFlags::ANY);
        let places = places.unwrap().unwrap().concat();
        let places = places.chunks_exact(size_of::<RecentSum>()).map(|bytes| {
            let mut place = RecentSum::default();
            plain::copy_from_bytes(&mut place, bytes).unwrap();
            place.sum.total
        });
        places.sum()
    };
    let returned = &parts.maps.returned;
    let notes: Vec<Waiting> = returned
        .keys()
        .map(|key| {
            let mut note = Waiting::default();
            let bytes = returned.lookup(&key, MapFlags::ANY).unwrap().unwrap();
            plain::copy_from_bytes(&mut note, &bytes).unwrap();
            note
        })
        .collect();
    for note in &notes {
        let said = (note.end, note.off_since, note.woken, note.owner);
        assert_eq!(said, (END, since, since + blocked, 7));
    }
    Counted {
        inside: in_slot(1),
        after: in_slot(0),
        noted: !notes.is_empty(),
    }
}

/// Asserts which parts of a wait count, for each kind of span. The wait is 300 ns blocked and
/// then 20 ns runnable.
#[track_caller]
fn assert_counted(since: u64, lengths: [u64; 3], place: impl Fn(u64) -> Counted) {
    let kinds = [
        SpanKind::SPANS_OFF_CPU,
        SpanKind::SPANS_BLOCKED,
        SpanKind::SPANS_RUNNABLE,
    ];
    for (kind, length) in kinds.into_iter().zip(lengths) {
        assert_eq!(counted(kind, since, 300, 20), place(length), "{kind:?}");
    }
}

fn inside(length: u64) -> Counted {
    Counted {
        inside: length,
        after: 0,
        noted: false,
    }
}

/// User space has counted the part before the period.
#[test]
fn of_a_wait_from_before_the_interval_only_the_rest_counts() {
    assert_counted(START - 100, [220, 200, 20], inside);
}

/// User space counts the part in the period.
#[test]
fn of_a_wait_over_the_end_only_what_is_after_it_counts() {
    assert_counted(END - 100, [220, 200, 20], |after| Counted {
        inside: 0,
        after,
        noted: true,
    });
}
