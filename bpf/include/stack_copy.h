/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A stack that no table is there for yet, of a process or a mapping that is
 * new: it goes to user space as it is, to be walked there once the tables are
 * made.
 */
#ifndef SYSTEMSCOPE_STACK_COPY_H
#define SYSTEMSCOPE_STACK_COPY_H

#include "events.h"
#include "unwind.h"

#define STACK_COPY_PAGE 4096
/* With what else an entry has, as much as a per-CPU map can hold (32 KiB). */
#define STACK_COPY_PAGES 7
#define STACK_COPY_BYTES (STACK_COPY_PAGES * STACK_COPY_PAGE)

/* The user registers and the stack above the stack pointer. */
struct stack_copy {
	u32 kind;
	u32 pid;
	u64 hash;
	u64 instance;
	struct user_registers registers;
	u32 leaf_is_exact;
	/* How much of the stack is there. */
	u32 bytes;
	u8 stack[STACK_COPY_BYTES];
};

#define STACK_COPY_HEADER __builtin_offsetof(struct stack_copy, stack)

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_copy);
} stack_copies SEC(".maps");

/* How many more may be sent; user space raises it as it keeps up. */
volatile s64 copies_allowed = 0;

/*
 * How many more a process may cause: user space renews that when it has read
 * mappings that it did not know. Direct-mapped by instance: one that pushes
 * another out only renews what that one may cause, within what is allowed.
 */
struct copy_budget {
	u64 instance;
	s32 left;
	u32 unused;
};

#define COPY_BUDGETS 4096

enum copy_limits {
	COPIES_OF_A_PROCESS = 16,
};

USER_SPACE_KNOWS(enum, copy_limits);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COPY_BUDGETS);
	__type(key, u32);
	__type(value, struct copy_budget);
} copy_budgets SEC(".maps");

/* A process's code changed: its mappings are to be read again. */
struct code_changed {
	u32 kind;
	u32 pid;
	u64 instance;
};

USER_SPACE_KNOWS(struct, code_changed);

/*
 * Sends what the walk in the room of @kind starts from, and the stack. Returns
 * whether it was sent. Global, for the verifier's sake: see unwind_frame().
 */
__noinline int send_stack_copy(u32 kind)
{
	struct stack_scratch *room = scratch_room(kind);
	struct stack_copy *copy;
	u32 zero = 0, bytes;
	u64 sp;

	copy = bpf_map_lookup_elem(&stack_copies, &zero);
	if (!room || !copy || !room->walk.leaf)
		return 0;
	copy->kind = EVENT_STACK_COPY;
	copy->pid = room->event.pid;
	copy->hash = room->event.hash;
	copy->instance = room->event.instance;
	copy->leaf_is_exact = room->event.leaf_is_exact;
	read_registers(&copy->registers, room->walk.leaf);
	sp = room->walk.sp;

	/* Up to the end of a page, then pages: reads are all or nothing. */
	bytes = STACK_COPY_PAGE - (sp & (STACK_COPY_PAGE - 1));
	if (!read_user(copy->stack, bytes, sp))
		return 0;
	for (u32 page = 1; page < STACK_COPY_PAGES; page++) {
		if (bytes > STACK_COPY_BYTES - STACK_COPY_PAGE)
			break;
		if (!read_user(copy->stack + bytes, STACK_COPY_PAGE,
			       sp + bytes))
			break;
		bytes += STACK_COPY_PAGE;
	}
	copy->bytes = bytes;
	bytes += STACK_COPY_HEADER;
	/* So that the verifier sees the comparison that the compiler made. */
	barrier_var(bytes);
	if (bytes > sizeof(*copy))
		return 0;
	return !bpf_ringbuf_output(&events, copy, bytes, 0);
}

/*
 * Sends a copy of the stack that @room is about, if there may be one. Returns
 * its ID, or STACK_MISSED.
 */
static __always_inline u64 copy_stack(struct stack_scratch *room)
{
	struct stack_event *event = &room->event;
	struct copy_budget *budget;
	u32 index = event->instance & (COPY_BUDGETS - 1);
	u64 hash;

	budget = bpf_map_lookup_elem(&copy_budgets, &index);
	if (!budget)
		return STACK_MISSED;
	if (budget->instance != event->instance) {
		budget->instance = event->instance;
		budget->left = COPIES_OF_A_PROCESS;
	}
	if (budget->left <= 0 || copies_allowed <= 0)
		return STACK_MISSED;

	hash = hash_word(event->instance, bpf_ktime_get_ns());
	event->hash = stack_id(hash_word(hash, bpf_get_current_pid_tgid()));
	if (!send_stack_copy(SCRATCH_HOOK))
		return STACK_MISSED;
	__sync_fetch_and_add(&copies_allowed, -1);
	__sync_fetch_and_add(&budget->left, -1);
	return event->hash;
}

#endif
