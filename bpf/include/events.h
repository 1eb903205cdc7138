/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What programs and user space share: messages, counts, losses. */
#ifndef SYSTEMSCOPE_EVENTS_H
#define SYSTEMSCOPE_EVENTS_H

#include "kernel_types.h"
#include <bpf/bpf_helpers.h>

#define COMM_LENGTH 16
/* The most frames of a stack that are kept. */
#define STACK_DEPTH 1024

enum stack_limits {
	/* Of the kernel's own: kernel.perf_event_max_stack, if nobody changes it. */
	KERNEL_STACK_DEPTH = 127,
};

USER_SPACE_KNOWS(enum, stack_limits);

/* Stack IDs that are not hashes. */
enum no_stack {
	STACK_NONE,
	STACK_MISSED,
	/* In a thread's record alone: it is taken once the thread is back. */
	STACK_AT_RETURN,
};

USER_SPACE_KNOWS(enum, no_stack);

/* Set in the ID of a stack that user space reads itself: a task's address. */
#define STACK_OF_PREEXISTING (1ULL << 63)

enum event_kind {
	EVENT_STACK,
	EVENT_THREAD_END,
	EVENT_COUNTS_FILLING,
	EVENT_STACK_DUMP,
	EVENT_CODE_CHANGED,
	EVENT_WAKER,
	EVENT_WAKER_CHAIN,
	EVENT_PROCESS,
	EVENT_MOVED,
	EVENT_OBJECT,
	EVENT_MIXED_STACK,
	EVENT_INTERPRETED_FUNCTION,
	EVENT_NEWCOMER,
};

USER_SPACE_KNOWS(enum, event_kind);

/* A stack's frames, leaf first. Only @depth of them are sent. */
struct stack_event {
	u32 kind;
	u32 depth;
	u64 hash;
	u64 instance;
	/* In the caller's PID namespace; 0 for a kernel stack. */
	u32 pid;
	/* Whether the leaf is a program counter or a return address. */
	u32 leaf_is_exact;
	/* How the walk ended: enum walk_end of unwind.h. */
	u32 walk_end;
	/* The process to whose share it counts, in the initial PID namespace. */
	u32 payer;
	u64 frames[STACK_DEPTH];
};

#define STACK_EVENT_HEADER __builtin_offsetof(struct stack_event, frames)

/* Multiply and fold, a word at a time. */
static __always_inline u64 hash_word(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9fb21c651e98df25ULL;
	return hash ^ (hash >> 29);
}

/* A hash as a stack's ID; the top bit is left to SEEDED ones. */
static __always_inline u64 stack_id(u64 hash)
{
	hash &= ~STACK_OF_PREEXISTING;
	return hash > STACK_AT_RETURN ? hash : STACK_AT_RETURN + 1;
}

#include "shares.h"

#define EVENTS_BYTES (4 << 20)

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, EVENTS_BYTES);
} events SEC(".maps");

/*
 * The flags of what user space may take when it next looks, which it does on a
 * clock of its own. Woken by what a sample sends it would run when the timers of
 * other CPUs sample, too, and never when that of its own does: it would be
 * sampled for more than it runs, or for less. Half of the room being taken wakes
 * it.
 */
static __always_inline u64 can_wait(void)
{
	u64 waiting = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);

	return waiting < EVENTS_BYTES / 2 ? BPF_RB_NO_WAKEUP :
					    BPF_RB_FORCE_WAKEUP;
}

/* The flags of what user space is to act upon at once. */
#define CANNOT_WAIT BPF_RB_FORCE_WAKEUP

struct shares event_shares SEC(".maps");

/* User space adds 1 when it begins to take all that was sent before. */
volatile u64 events_turn = 0;

/*
 * Whether @process may send @bytes, which then count to its share. What it sent in the turn
 * before may not have been taken yet.
 */
static __always_inline bool take_share(u32 process, u32 bytes)
{
	u64 waiting = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);
	struct share *share = find_share(&event_shares, process, events_turn);

	if (!share)
		return false;
	if (!may_take_more((u64)share->taken + share->taken_before + bytes,
			   waiting, EVENTS_BYTES))
		return false;
	__sync_fetch_and_add(&share->taken, bytes);
	return true;
}

/* The same as a call, for the verifier's sake: see unwind_frame(). */
__noinline int may_send(u32 process, u32 bytes)
{
	return take_share(process, bytes);
}

/* Sends an event on behalf of @process. Returns 0 if it was sent. */
static __always_inline long send(u32 process, void *event, u64 bytes, u64 flags)
{
	if (!may_send(process, bytes))
		return -1;
	return bpf_ringbuf_output(&events, event, bytes, flags);
}

/* What could not be kept. User space reports each. */
struct losses {
	/* Stacks and wakers that found no room; sent again when next seen. */
	u64 stack_frames;
	/* Intervals or samples that found no room to be counted. */
	u64 counts;
	/* Events of threads that found no room for a clock. */
	u64 clocks;
	/* Context switches that the kernel did not show us. */
	u64 switches;
	/* Threads whose account found no room when they ended. */
	u64 thread_ends;
	/* Processes that targets forked and that found no room to be targets. */
	u64 children;
	/* Cgroups too deep for it to be known whether they are below a target. */
	u64 deep_cgroups;
};

volatile struct losses lost = {};

#endif
