//! Tests spans that are counted by owner, on their way from a CPU's recent sums to the sums of
//! all CPUs. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::mem::MaybeUninit;

use bpf::types::{RecentSum, SpanKey, SpanOwner, SpanSum};
use checks::cpudist::{CpudistSkel, CpudistSkelBuilder};
use checks::{load, run};
use libbpf_rs::{MapCore, MapFlags};
use plain::Plain;

/// Number of owners: more than a CPU has places for, so that owners evict each other.
const OWNERS: u32 = 3000;
/// Lengths in ns, all in the same bucket.
const LENGTHS: [u64; 3] = [1000, 1007, 1003];

fn read<T: Plain + Default>(bytes: &[u8]) -> T {
    let mut value = T::default();
    plain::copy_from_bytes(&mut value, bytes).unwrap();
    value
}

fn count_all(parts: &mut CpudistSkel<'_>, slot: u32) {
    for length in LENGTHS {
        for owner in 1..=OWNERS {
            let shared = parts.maps.bss_data.as_deref_mut().unwrap();
            shared.span_slot = slot;
            shared.span_belongs_to = owner;
            shared.span_length = length;
            run(&parts.progs.count_once);
        }
    }
}

/// Returns the sums by owner in a slot, of a map and of the recent sums of all CPUs together.
fn sums(parts: &CpudistSkel<'_>, map: &impl MapCore, slot: u32) -> BTreeMap<u32, SpanSum> {
    let mut sums: BTreeMap<u32, SpanSum> = BTreeMap::new();
    let mut add = |owner: u32, more: SpanSum| {
        let sum = sums.entry(owner).or_default();
        sum.spans += more.spans;
        sum.total += more.total;
        sum.longest = sum.longest.max(more.longest);
    };
    for key in map.keys() {
        let sum = map.lookup(&key, MapFlags::ANY).unwrap().unwrap();
        let key: SpanKey = read(&key);
        if u32::from(key.slot) == slot {
            add(key.owner, read(&sum));
        }
    }
    let places = parts
        .maps
        .recent_sums
        .lookup_percpu(&slot.to_ne_bytes(), MapFlags::ANY);
    for places in places.unwrap().unwrap() {
        for place in places.chunks_exact(size_of::<RecentSum>()) {
            let place: RecentSum = read(place);
            if place.sum.spans > 0 {
                add(place.key.owner, place.sum);
            }
        }
    }
    sums
}

#[test]
fn spans_of_many_owners_add_up_in_their_interval() {
    let mut object = MaybeUninit::uninit();
    let mut parts = load(CpudistSkelBuilder::default(), &mut object, |open| {
        open.maps.rodata_data.as_deref_mut().unwrap().span_owner.0 = SpanOwner::OWNER_THREAD.0;
    });
    let expected = SpanSum {
        spans: LENGTHS.len() as u64,
        total: LENGTHS.iter().sum(),
        longest: 1007,
    };
    count_all(&mut parts, 1);
    let sums_of = |parts: &CpudistSkel<'_>, slot| sums(parts, &parts.maps.sums_even, slot);
    assert_eq!(sums_of(&parts, 0), BTreeMap::new());
    let counted = sums_of(&parts, 1);
    assert_eq!(counted.len(), OWNERS as usize);
    for (owner, sum) in counted {
        assert_eq!(sum, expected, "{owner}");
    }
    assert_eq!(parts.maps.sums_odd.keys().count(), 0);

    // User space drains the even map, so evicted sums go to the odd map.
    let before = parts.maps.sums_even.keys().count();
    parts.maps.bss_data.as_deref_mut().unwrap().sums_turn = 1;
    count_all(&mut parts, 0);
    assert_eq!(parts.maps.sums_even.keys().count(), before);
    let counted = sums(&parts, &parts.maps.sums_odd, 0);
    assert_eq!(counted.len(), OWNERS as usize);
    for (owner, sum) in counted {
        assert_eq!(sum, expected, "{owner}");
    }
}
