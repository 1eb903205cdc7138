/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Sums by thread and stack. Two maps take turns: user space has programs count
 * into the other one, and then looks at each CPU, with visit_cpu, until none
 * counts there that may have begun before. So the first map is user space's
 * alone, and nothing is lost to a drain, or added to another key.
 */
#ifndef SYSTEMSCOPE_COUNTS_H
#define SYSTEMSCOPE_COUNTS_H

#include "events.h"

struct stack_key {
	u32 pid;
	/* 0 unless threads are told apart. */
	u32 tid;
	u64 user;
	u64 kernel;
	/* Who ended the wait: the ID of a chain of wakers, where that is asked. */
	u64 waker;
	/* What the thread waited on, where that is asked: an ID of waits/objects.h. */
	u64 object;
	/* How a wait ended: enum wait_end of clock/thread_record.h. */
	u64 wait_end;
	/* Of intervals that were sampled: the nanoseconds that each stands for. */
	u64 period;
	u8 comm[COMM_LENGTH];
};

struct tally {
	u64 events;
	/* Nanoseconds. */
	u64 blocked;
	u64 runnable;
	/* The longest interval and the shortest, nanoseconds. */
	u64 longest;
	u64 shortest;
	/* The squares of the lengths, see square_of(). */
	u64 squares;
};

/*
 * The square of a length, in units of 2^20 ns^2. Of a length beyond two minutes it
 * is that of two minutes, so that sums have room.
 */
#define LONGEST_SQUARED (1ULL << 27)

static __always_inline u64 square_of(u64 length)
{
	u64 root = length >> 10;

	if (root > LONGEST_SQUARED)
		root = LONGEST_SQUARED;
	return root * root;
}

#define COUNTS_ENTRIES 16384

struct counts_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, COUNTS_ENTRIES);
	__type(key, struct stack_key);
	__type(value, struct tally);
} counts_even SEC(".maps"), counts_odd SEC(".maps");

/* Which of the two is counted into. */
volatile u64 counts_are_odd = 0;

/*
 * How many count on a CPU now. Most have interrupts off, and cannot be met; a
 * sample at a page fault has not, nor has a thread that returns.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} counting SEC(".maps");

const volatile bool per_thread = false;

/*
 * Keys put into the current map, and whether user space was asked to drain
 * it. User space looks at the first and sets both to 0 when it swaps.
 */
volatile u64 counts_used = 0;
volatile u64 drain_asked = 0;

/* Asks for a drain once three quarters are used. */
static __always_inline void note_new_count(void)
{
	u32 *event;

	__sync_fetch_and_add(&counts_used, 1);
	if (counts_used < COUNTS_ENTRIES / 4 * 3 || drain_asked)
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(u32), 0);
	if (!event)
		return;
	drain_asked = 1;
	*event = EVENT_COUNTS_FILLING;
	bpf_ringbuf_submit(event, CANNOT_WAIT);
}

static __always_inline void count_in(void *map, struct stack_key *key,
				     const struct tally *weight)
{
	struct tally *tally;

	tally = bpf_map_lookup_elem(map, key);
	if (!tally) {
		if (!bpf_map_update_elem(map, key, weight, BPF_NOEXIST)) {
			note_new_count();
			return;
		}
		/* Another CPU was first, or there is no room. */
		tally = bpf_map_lookup_elem(map, key);
		if (!tally) {
			__sync_fetch_and_add(&lost.counts, weight->events);
			return;
		}
	}
	__sync_fetch_and_add(&tally->events, weight->events);
	__sync_fetch_and_add(&tally->blocked, weight->blocked);
	__sync_fetch_and_add(&tally->runnable, weight->runnable);
	__sync_fetch_and_add(&tally->squares, weight->squares);
	if (weight->longest > tally->longest)
		tally->longest = weight->longest;
	if (weight->shortest < tally->shortest)
		tally->shortest = weight->shortest;
}

static __always_inline volatile u32 *counting_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&counting, &zero);
}

static __always_inline void count(struct stack_key *key,
				  const struct tally *weight)
{
	volatile u32 *here = counting_here();

	if (!here)
		return;
	*here += 1;
	count_in(counts_are_odd ? &counts_odd : &counts_even, key, weight);
	*here -= 1;
}

/* Run on each CPU by user space. Returns whether somebody counts there. */
SEC("raw_tp")
int visit_cpu(void *ctx)
{
	u32 zero = 0;
	u32 *here = bpf_map_lookup_elem(&counting, &zero);

	return here && *here;
}

#endif
