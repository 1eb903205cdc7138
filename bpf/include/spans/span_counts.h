/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Histogram of span lengths. The buckets are linear at first. From then on each power
 * of two has 64 buckets, so no bucket is wider than a 64th of the lengths in it.
 * shared/profile/src/spans.rs has the same buckets.
 *
 * There are two slots of counts: one for the period that programs measure, and one for
 * the period that user space reads.
 */
#ifndef SYSTEMSCOPE_SPAN_COUNTS_H
#define SYSTEMSCOPE_SPAN_COUNTS_H

#include "events.h"
#include <bpf/bpf_core_read.h>
#include "task.h"

enum span_limits {
	SPAN_SLOTS = 2,
};

USER_SPACE_KNOWS(enum, span_limits);

#define SUB_BUCKET_BITS 6
/* 13 days in nanoseconds. The last bucket takes longer spans. */
#define LONGEST_BITS 50
#define SPAN_BUCKETS ((LONGEST_BITS - SUB_BUCKET_BITS + 1) << SUB_BUCKET_BITS)

/* Kind of span: time on the CPU, off it, or a part of the time off it. */
enum span_kind {
	SPANS_RUNNING,
	SPANS_OFF_CPU,
	SPANS_BLOCKED,
	SPANS_RUNNABLE,
};

const volatile enum span_kind span_kind = SPANS_RUNNING;

/* Owner by which spans are counted separately. */
enum span_owner {
	OWNER_NONE,
	OWNER_PROCESS,
	OWNER_THREAD,
};

const volatile enum span_owner span_owner = OWNER_NONE;
/*
 * True if users see powers of two in milliseconds. Lengths are then in units of 15625 /
 * 2^14 ns, and 2^20 units are 1 ms. If false, lengths are in nanoseconds, and 1000
 * times any power of two is the lower bound of a bucket.
 */
const volatile bool in_milliseconds = false;

/* Counts without owners. Only their own CPU writes them, with interrupts off. */
struct span_counts {
	/* Sum of all spans and the longest span, in nanoseconds. */
	u64 total;
	u64 longest;
	u64 buckets[SPAN_BUCKETS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SPAN_SLOTS);
	__type(key, u32);
	__type(value, struct span_counts);
} span_counts SEC(".maps");

/* Key of the sums by owner: one bucket of one owner. */
struct span_key {
	/* ID in the caller's PID namespace. */
	u32 owner;
	u16 bucket;
	u16 slot;
};

struct span_sum {
	u64 spans;
	u64 total;
	u64 longest;
};

#define SPAN_SUMS 32768

/* Maps that take turns, as counts.h explains. Each holds both slots. */
struct span_sums {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SPAN_SUMS);
	__type(key, struct span_key);
	__type(value, struct span_sum);
} sums_even SEC(".maps"), sums_odd SEC(".maps");

/* Number of swaps by user space: odd while programs count into the second map. */
volatile u64 sums_turn = 0;

/*
 * Number of keys put into each map. User space resets it to 0 before programs use the
 * map.
 */
volatile u64 sums_used_even = 0;
volatile u64 sums_used_odd = 0;

static __always_inline volatile u64 *sums_used(u64 turn)
{
	return turn & 1 ? &sums_used_odd : &sums_used_even;
}

/* Shares by owner: each process or thread has its own. */
struct shares sum_shares SEC(".maps");

/*
 * Recent sum of a CPU, before it moves to the sums of all CPUs. The key determines the
 * place, so no search is needed. Only its own CPU writes it, with interrupts off.
 */
struct recent_sum {
	struct span_key key;
	struct span_sum sum;
};

#define RECENT_BITS 9

struct recent_sums {
	struct recent_sum places[1 << RECENT_BITS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SPAN_SLOTS);
	__type(key, u32);
	__type(value, struct recent_sums);
} recent_sums SEC(".maps");

/*
 * Returns the index of the highest bit that is set in @value, which is not 0. The code
 * has no branches, since the verifier would follow each of them to the end.
 */
static __always_inline u32 highest_bit(u64 value)
{
	value |= value >> 1;
	value |= value >> 2;
	value |= value >> 4;
	value |= value >> 8;
	value |= value >> 16;
	value |= value >> 32;
	/*
	 * Counts the set bits: in each 2 bits, in each 4 bits, in each 8 bits, in all
	 * 64 bits.
	 */
	value -= value >> 1 & 0x5555555555555555ULL;
	value = (value & 0x3333333333333333ULL) +
		(value >> 2 & 0x3333333333333333ULL);
	value = (value + (value >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return (value * 0x0101010101010101ULL >> 56) - 1;
}

static __always_inline u32 span_bucket(u64 length)
{
	u32 shift;

	if (length >> LONGEST_BITS)
		return SPAN_BUCKETS - 1;
	if (in_milliseconds) {
		length = (length << 14) / 15625;
		if (length >> LONGEST_BITS)
			return SPAN_BUCKETS - 1;
	}
	shift = highest_bit(length | 1 << SUB_BUCKET_BITS) - SUB_BUCKET_BITS;
	return (shift << SUB_BUCKET_BITS) + (length >> shift);
}

/* Returns whether @owner may add a key to the map of @turn, and charges its share. */
static __always_inline bool may_add_sum(u32 owner, u64 turn)
{
	struct share *share = find_share(&sum_shares, owner, turn);

	if (!share || !may_take_more(share->taken, *sums_used(turn), SPAN_SUMS))
		return false;
	__sync_fetch_and_add(&share->taken, 1);
	return true;
}

static __always_inline void add_to_map(void *map, u64 turn,
				       struct recent_sum *recent)
{
	struct span_sum *sum;

	sum = bpf_map_lookup_elem(map, &recent->key);
	if (!sum && !may_add_sum(recent->key.owner, turn)) {
		__sync_fetch_and_add(&lost.counts, recent->sum.spans);
		return;
	}
	if (!sum) {
		if (!bpf_map_update_elem(map, &recent->key, &recent->sum,
					 BPF_NOEXIST)) {
			__sync_fetch_and_add(sums_used(turn), 1);
			return;
		}
		/* Another CPU added the key first, or the map is full. */
		sum = bpf_map_lookup_elem(map, &recent->key);
		if (!sum) {
			__sync_fetch_and_add(&lost.counts, recent->sum.spans);
			return;
		}
	}
	__sync_fetch_and_add(&sum->spans, recent->sum.spans);
	__sync_fetch_and_add(&sum->total, recent->sum.total);
	/*
	 * If two CPUs write at once, the shorter length may stay, which is in the same
	 * bucket.
	 */
	if (recent->sum.longest > sum->longest)
		sum->longest = recent->sum.longest;
}

/* Adds the sum in a place to the sums of @slot. */
static __noinline int add_to_sums(u32 slot, struct recent_sum *recent)
{
	u64 turn = sums_turn;

	recent->key.slot = slot;
	add_to_map(turn & 1 ? &sums_odd : &sums_even, turn, recent);
	return 0;
}

static __always_inline void add_span(struct span_sum *sum, u64 length)
{
	sum->spans++;
	sum->total += length;
	if (length > sum->longest)
		sum->longest = length;
}

static __always_inline void count_for_owner(u32 slot, u32 owner, u32 bucket,
					    u64 length)
{
	struct recent_sums *recent;
	struct recent_sum *place;
	u32 index;

	recent = bpf_map_lookup_elem(&recent_sums, &slot);
	if (!recent)
		return;
	/* The multiplication spreads neighbouring keys over all places. */
	index = (owner * SPAN_BUCKETS + bucket) * 0x9e3779b1 >>
		(32 - RECENT_BITS);
	place = &recent->places[index & ((1 << RECENT_BITS) - 1)];
	if (place->key.owner != owner || place->key.bucket != bucket) {
		if (place->sum.spans)
			add_to_sums(slot, place);
		place->key.owner = owner;
		place->key.bucket = bucket;
		place->sum = (struct span_sum){};
	}
	add_span(&place->sum, length);
}

/* Counts a span of @length in @slot. Callers have interrupts off. */
static __always_inline void count_span(u32 slot, u32 owner, u64 length)
{
	u32 bucket = span_bucket(length);
	struct span_counts *counts;

	if (span_owner != OWNER_NONE) {
		count_for_owner(slot, owner, bucket, length);
		return;
	}
	counts = bpf_map_lookup_elem(&span_counts, &slot);
	if (!counts)
		return;
	/*
	 * The compiler knows the bound, so it must not see the comparison that the
	 * verifier needs.
	 */
	asm volatile("" : "+r"(bucket));
	if (bucket < SPAN_BUCKETS)
		counts->buckets[bucket]++;
	counts->total += length;
	if (length > counts->longest)
		counts->longest = length;
}

#endif
