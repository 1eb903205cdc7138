/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * How many spans there were of each length. Lengths are sorted into buckets
 * that are linear at first, then 64 to a power of two, so that none is wider
 * than a 64th of what it holds. shared/profile/src/spans.rs has the same.
 *
 * There are two slots of counts, for the interval that is measured and for
 * the one that user space reads.
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
/* 13 days in nanoseconds. What is longer goes into the last bucket. */
#define LONGEST_BITS 50
#define SPAN_BUCKETS ((LONGEST_BITS - SUB_BUCKET_BITS + 1) << SUB_BUCKET_BITS)

/* What a span is: time on the CPU, off it, or a part of that. */
enum span_kind {
	SPANS_RUNNING,
	SPANS_OFF_CPU,
	SPANS_BLOCKED,
	SPANS_RUNNABLE,
};

const volatile enum span_kind span_kind = SPANS_RUNNING;

/* Whose spans are told apart. */
enum span_owner {
	OWNER_NONE,
	OWNER_PROCESS,
	OWNER_THREAD,
};

const volatile enum span_owner span_owner = OWNER_NONE;
/*
 * Whether the powers of two that people read are of milliseconds: buckets then
 * are of 15625 / 2^14 ns, of which 2^20 are one. In nanoseconds 1000 times any
 * power of two is where a bucket begins.
 */
const volatile bool in_milliseconds = false;

/* Without owners. Written by its CPU alone, with interrupts off. */
struct span_counts {
	/* All spans together, and the longest, nanoseconds. */
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

/* By owner, a bucket at a time. */
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

/* Both slots are in each. They take turns: counts.h says why nothing is lost. */
struct span_sums {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SPAN_SUMS);
	__type(key, struct span_key);
	__type(value, struct span_sum);
} sums_even SEC(".maps"), sums_odd SEC(".maps");

/* Number of swaps by user space: odd while programs count into the second map. */
volatile u64 sums_turn = 0;

/* Keys put into each. User space sets it to 0 before it has programs use the map. */
volatile u64 sums_used_even = 0;
volatile u64 sums_used_odd = 0;

static __always_inline volatile u64 *sums_used(u64 turn)
{
	return turn & 1 ? &sums_used_odd : &sums_used_even;
}

/* By owner: each process or thread has a share of its own. */
struct shares sum_shares SEC(".maps");

/*
 * What a CPU counted last, before it goes to the sums: a place for a key is
 * found without searching, and written by its CPU alone, with interrupts off.
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
 * The number of the highest bit that is set in @value, which is not 0: one less than
 * there are bits up to it. Without a branch, of which the verifier would follow each
 * to the end.
 */
static __always_inline u32 highest_bit(u64 value)
{
	value |= value >> 1;
	value |= value >> 2;
	value |= value >> 4;
	value |= value >> 8;
	value |= value >> 16;
	value |= value >> 32;
	/* How many there are in each two bits, in each four, in each eight, in all. */
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

/* Whether @owner may put another key into the map of @turn, which then counts to its share. */
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
		/* Another CPU was first, or there is no room. */
		sum = bpf_map_lookup_elem(map, &recent->key);
		if (!sum) {
			__sync_fetch_and_add(&lost.counts, recent->sum.spans);
			return;
		}
	}
	__sync_fetch_and_add(&sum->spans, recent->sum.spans);
	__sync_fetch_and_add(&sum->total, recent->sum.total);
	/* Two CPUs at once may leave the shorter, which is of the same bucket. */
	if (recent->sum.longest > sum->longest)
		sum->longest = recent->sum.longest;
}

/* Adds to the sums of @slot what is in a place, to make room there. */
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
	/* Neighbours are apart in every bit of the product's upper half. */
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

/* Counts a span of @length in @slot. To be called with interrupts off. */
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
	/* The compiler knows the bound; this is for the verifier. */
	asm volatile("" : "+r"(bucket));
	if (bucket < SPAN_BUCKETS)
		counts->buckets[bucket]++;
	counts->total += length;
	if (length > counts->longest)
		counts->longest = length;
}

#endif
