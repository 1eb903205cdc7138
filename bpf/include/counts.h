/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Sums by thread and stack, in two maps that take turns. To drain a map, user space
 * first makes programs count in the other map. It then runs visit_cpu on each CPU until
 * no program that may have begun before is still counting. From then on user space
 * alone uses the map that it drains. A drain therefore loses no count and adds none to
 * another key.
 */
#ifndef SYSTEMSCOPE_COUNTS_H
#define SYSTEMSCOPE_COUNTS_H

#include "events.h"

struct stack_key {
	u32 pid;
	/* 0 unless the threads of the process are counted separately. */
	u32 tid;
	u64 user;
	u64 kernel;
	/*
	 * ID of the chain of wakers that ended the wait; 0 unless the command line asks
	 * for wakers.
	 */
	u64 waker;
	/*
	 * Resource that the thread waited on: an ID of waits/objects.h; 0 unless the
	 * command line asks for resources.
	 */
	u64 object;
	/* enum wait_end of clock/thread_record.h. */
	u64 wait_end;
	/*
	 * Nanoseconds that each sampled interval stands for; 0 for intervals that are
	 * not sampled.
	 */
	u64 period;
	u8 comm[COMM_LENGTH];
};

struct tally {
	u64 events;
	/* Sums of the times, in nanoseconds. */
	u64 blocked;
	u64 runnable;
	/* Longest and shortest interval, in nanoseconds. */
	u64 longest;
	u64 shortest;
	/* Sum of the squared lengths, see square_of(). */
	u64 squares;
};

/*
 * square_of() works in units of 2^20 ns^2. It treats a length above two minutes as two
 * minutes, so that sums do not overflow.
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
 * Number of swaps by user space: odd while programs count into the second map. The map,
 * its keys and the shares follow from this one word, so all three belong to one turn.
 */
volatile u64 counts_turn = 0;

/*
 * Number of programs that are counting on this CPU. Most programs run with interrupts
 * off, so no other program interrupts them. Programs at the sample of a page fault and
 * at the return of a thread run with interrupts on.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} counting SEC(".maps");

const volatile bool per_thread = false;

/*
 * Number of keys put into each map. User space resets it to 0 before programs use the
 * map.
 */
volatile u64 counts_used_even = 0;
volatile u64 counts_used_odd = 0;
/*
 * 1 once a program has asked user space to drain the current map. User space resets it
 * when it swaps.
 */
volatile u64 drain_asked = 0;

static __always_inline volatile u64 *keys_used(u64 turn)
{
	return turn & 1 ? &counts_used_odd : &counts_used_even;
}

struct shares count_shares SEC(".maps");

/*
 * Counts a new key. Asks for a drain once half of the map is used, before any process
 * has used up its share.
 */
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
 * Returns whether @process may add a key to the map of @turn, and charges its share.
 * The function is global to save the verifier work: see unwind_frame().
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
 * Returns whether @process may add a key without stacks, and charges its share. A
 * process has few such keys unless it has many names, or many threads that are counted
 * separately. Each process gets a sixteenth of the free keys.
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

/* Clears the fields of @key that differ between intervals of the thread. */
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
		/* Another CPU added the key first, or the map is full. */
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

/*
 * Returns whether a program is counting on this CPU. User space runs this as visit_cpu.
 */
static __always_inline int is_counting_here(void)
{
	u32 zero = 0;
	u32 *here = bpf_map_lookup_elem(&counting, &zero);

	return here && *here;
}

#endif
