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
#define SQUARE_SHIFT 10
#define LONGEST_SQUARED (1ULL << 27)

static __always_inline u64 square_of(u64 length)
{
	u64 root = length >> SQUARE_SHIFT;

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

/*
 * Number of swaps by user space: odd while programs count into the second map. The map, its
 * keys and the shares follow from this one word, so all three are of one turn.
 */
volatile u64 counts_turn = 0;

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

/* Keys put into each map. User space sets it to 0 before it has programs use the map. */
volatile u64 counts_used_even = 0;
volatile u64 counts_used_odd = 0;
/* Whether user space was asked to drain the current one; it sets this to 0 when it swaps. */
volatile u64 drain_asked = 0;

static __always_inline volatile u64 *keys_used(u64 turn)
{
	return turn & 1 ? &counts_used_odd : &counts_used_even;
}

struct shares count_shares SEC(".maps");

/* Asks for a drain once half is used, before any process has used up its share. */
static __always_inline void note_new_count(u64 turn)
{
	u32 *event;

	__sync_fetch_and_add(keys_used(turn), 1);
	if (*keys_used(turn) < COUNTS_ENTRIES / 2 || drain_asked)
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(u32), 0);
	if (!event)
		return;
	drain_asked = 1;
	*event = EVENT_COUNTS_FILLING;
	bpf_ringbuf_submit(event, CANNOT_WAIT);
}

/*
 * Whether @process may put another key into the map of @turn, which then counts to its share.
 * Global, for the verifier's sake: see unwind_frame().
 */
__noinline int may_add_key(u32 process, u64 turn)
{
	struct share *share = find_share(&count_shares, process, turn);

	if (!share ||
	    !may_take_more(share->taken, *keys_used(turn), COUNTS_ENTRIES))
		return false;
	__sync_fetch_and_add(&share->taken, 1);
	return true;
}

/*
 * The same of a key without stacks. These are few, unless a process has many threads that
 * are told apart, or many names. They get a sixteenth of what is left.
 */
__noinline int may_add_key_without_stacks(u32 process, u64 turn)
{
	struct share *share = find_share(&count_shares, process, turn);

	if (!share ||
	    *keys_used(turn) + share->without_stacks * 16ULL >= COUNTS_ENTRIES)
		return false;
	__sync_fetch_and_add(&share->without_stacks, 1);
	return true;
}

/* Makes @key one that all intervals of the thread have in common. */
static __always_inline void leave_out_stacks(struct stack_key *key)
{
	if (key->user != STACK_NONE)
		key->user = STACK_MISSED;
	if (key->kernel != STACK_NONE)
		key->kernel = STACK_MISSED;
	key->waker = 0;
	key->object = 0;
	key->wait_end = 0;
}

static __always_inline void count_in(void *map, u64 turn, struct stack_key *key,
				     const struct tally *weight)
{
	struct tally *tally;

	tally = bpf_map_lookup_elem(map, key);
	if (!tally && !may_add_key(key->pid, turn)) {
		leave_out_stacks(key);
		tally = bpf_map_lookup_elem(map, key);
		if (!tally && !may_add_key_without_stacks(key->pid, turn)) {
			__sync_fetch_and_add(&lost.counts, weight->events);
			return;
		}
	}
	if (!tally) {
		if (!bpf_map_update_elem(map, key, weight, BPF_NOEXIST)) {
			note_new_count(turn);
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
	u64 turn;

	if (!here)
		return;
	*here += 1;
	turn = counts_turn;
	count_in(turn & 1 ? &counts_odd : &counts_even, turn, key, weight);
	*here -= 1;
}

/* Whether somebody counts on this CPU, where user space runs a program that asks. */
static __always_inline int is_counting_here(void)
{
	u32 zero = 0;
	u32 *here = bpf_map_lookup_elem(&counting, &zero);

	return here && *here;
}

#endif
