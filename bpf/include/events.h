/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Messages, limits and losses, shared with user space. */
#ifndef SYSTEMSCOPE_EVENTS_H
#define SYSTEMSCOPE_EVENTS_H

#include "kernel_types.h"
#include <bpf/bpf_helpers.h>

#define COMM_LENGTH 16
/* Maximum frames of a user stack. */
#define STACK_DEPTH 1024

enum stack_limits {
	/* Maximum frames of a kernel stack: the default of kernel.perf_event_max_stack. */
	KERNEL_STACK_DEPTH = 127,
};

USER_SPACE_KNOWS(enum, stack_limits);

/* Stack IDs that are not hashes. */
enum no_stack {
	STACK_NONE,
	STACK_MISSED,
	/*
	 * Only in a thread's record: a program will capture the stack once the thread
	 * is back on a CPU.
	 */
	STACK_AT_RETURN,
};

USER_SPACE_KNOWS(enum, no_stack);

/*
 * Bit that is set in the ID of a stack that user space reads itself. Such an ID is a
 * task's address, or a hash with this bit.
 */
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

/* Message with the frames of a stack, leaf first. Only @depth frames are sent. */
struct stack_event {
	u32 kind;
	u32 depth;
	u64 hash;
	u64 instance;
	/* Process in the caller's PID namespace; 0 for a kernel stack. */
	u32 pid;
	/* 1 if the leaf is a program counter, 0 if it is a return address. */
	u32 leaf_is_exact;
	/* enum walk_end of unwind.h. */
	u32 walk_end;
	/*
	 * Process whose share pays for the event, by its PID in the initial PID
	 * namespace.
	 */
	u32 payer;
	u64 frames[STACK_DEPTH];
};

#define STACK_EVENT_HEADER __builtin_offsetof(struct stack_event, frames)

/* Returns @hash extended by @word. */
static __always_inline u64 hash_word(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9fb21c651e98df25ULL;
	return hash ^ (hash >> 29);
}

/* Returns the stack ID for a hash. The top bit stays free for STACK_OF_PREEXISTING. */
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
 * Returns the flags for data that can wait for user space's next poll, whose time
 * depends on user space's own clock. If samples woke user space, it would run when the
 * timers of other CPUs sample, and never at a sample of its own CPU. Programs would
 * then sample user space too often or too rarely. A ring buffer that is half full wakes
 * user space.
 */
static __always_inline u64 can_wait(void)
{
	u64 waiting = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);

	return waiting < EVENTS_BYTES / 2 ? BPF_RB_NO_WAKEUP :
					    BPF_RB_FORCE_WAKEUP;
}

/* Flags for data that user space must handle at once. */
#define CANNOT_WAIT BPF_RB_FORCE_WAKEUP

struct shares event_shares SEC(".maps");

/*
 * Number of turns, which user space increments when it begins to take all data sent
 * before.
 */
volatile u64 events_turn = 0;

/*
 * Returns whether @process may send @bytes, and charges its share. Data of the previous
 * turn counts as well, since user space may not have taken it yet.
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

/*
 * Same as take_share(), but not inlined, to save the verifier work: see unwind_frame().
 */
__noinline int may_send(u32 process, u32 bytes)
{
	return take_share(process, bytes);
}

/* Sends an event on behalf of @process. Returns 0 on success. */
static __always_inline long send(u32 process, void *event, u64 bytes, u64 flags)
{
	if (!may_send(process, bytes))
		return -1;
	return bpf_ringbuf_output(&events, event, bytes, flags);
}

/* Numbers of losses. User space reports each. */
struct losses {
	/*
	 * Stacks and wakers for which the buffer was full. Programs send them when they
	 * next see them.
	 */
	u64 stack_frames;
	/* Intervals or samples that could not be counted because a map was full. */
	u64 counts;
	/* Events of threads that got no record because the map was full. */
	u64 clocks;
	/* Context switches that the kernel did not show to the programs. */
	u64 switches;
	/* Ended threads whose account could not be sent. */
	u64 thread_ends;
	/*
	 * Processes forked by targets that could not become targets because a map was
	 * full.
	 */
	u64 children;
	/* Lookups of cgroups too deep to decide whether they are below a target. */
	u64 deep_cgroups;
};

volatile struct losses lost = {};

#endif
