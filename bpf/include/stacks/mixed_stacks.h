/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The frames of a runtime in a stack are sent beside its native ones, which may be there
 * with others: both together have an ID of their own.
 */
#ifndef SYSTEMSCOPE_MIXED_STACKS_H
#define SYSTEMSCOPE_MIXED_STACKS_H

#include "events.h"
#include "languages/languages.h"
#include "stacks/seen_stacks.h"
#include "stacks/unwind.h"

/* The ID of the native stack @native with the frames of a runtime in @room, if any. */
static __always_inline u64 mixed_stack_id(struct stack_scratch *room,
					  u64 native)
{
	u64 hash = room->chain.hash;

	return hash ? stack_id(hash_word(native, hash)) : native;
}

/*
 * Sends the function of one of a runtime's frames in the room of @kind, if it may be
 * new in user space. Global, and so with scalars only: the verifier looks at it
 * once.
 */
__noinline int publish_function(u32 kind, u32 index)
{
	struct stack_scratch *room = scratch_room(kind);
	struct mixed_stack *stack = mixed_room(kind);
	struct interpreted_function *function;
	struct language_layout *layout;
	struct chain_link *link;
	u64 hash, size, *slot;

	function = bpf_map_lookup_elem(&interpreted_functions, &kind);
	if (!room || !stack || !function)
		return 0;
	layout = find_layout(room->chain.layout);
	if (!layout)
		return 0;
	link = &stack->links[index & (CHAIN_DEPTH - 1)];
	if (link->instruction == CHAIN_ANCHOR)
		return 0;
	hash = hash_word(room->event.instance, link->code);
	hash = stack_id(hash_word(hash, link->checksum));
	slot = unseen(hash);
	if (!slot)
		return 0;
	size = read_function(function, room->chain.language, layout, link);
	if (!size)
		return 0;
	function->kind = EVENT_INTERPRETED_FUNCTION;
	function->pid = room->event.pid;
	function->instance = room->event.instance;
	function->layout = room->chain.layout;
	function->code = link->code;
	function->checksum = link->checksum;
	size += FUNCTION_HEADER;
	barrier_var(size);
	/* Older kernels have no stack for another call. */
	if (size <= sizeof(*function) && take_share(room->event.payer, size) &&
	    !bpf_ringbuf_output(&events, function, size, can_wait()))
		*slot = hash;
	return 0;
}

#define FUNCTIONS_AT_ONCE 32

/* The same of some, from @first on. */
__noinline int publish_some_functions(u32 kind, u32 first)
{
	struct mixed_stack *stack = mixed_room(kind);

	if (!stack)
		return 0;
	for (u32 i = 0; i < FUNCTIONS_AT_ONCE; i++) {
		if (first + i >= stack->count)
			break;
		publish_function(kind, first + i);
	}
	return 0;
}

/* The same of all of them. */
static __always_inline void publish_all_functions(u32 kind)
{
	struct mixed_stack *stack = mixed_room(kind);

	if (!stack)
		return;
	for (u32 first = 0; first < CHAIN_DEPTH; first += FUNCTIONS_AT_ONCE) {
		if (first >= stack->count)
			break;
		publish_some_functions(kind, first);
	}
}

/* The same as a call, where a dump is sent. */
__noinline int publish_functions(u32 kind)
{
	publish_all_functions(kind);
	return 0;
}

/*
 * Sends the frames of a runtime in the room of @kind as @hash, which they are with the
 * native stack @native. Returns whether they were sent.
 */
__noinline int send_mixed_stack(u32 kind, u64 hash, u64 native)
{
	struct stack_scratch *room = scratch_room(kind);
	struct mixed_stack *stack = mixed_room(kind);
	u64 links, cfas;

	if (!room || !stack)
		return false;
	stack->kind = EVENT_MIXED_STACK;
	stack->hash = hash;
	stack->native = native;
	stack->pid = room->event.pid;
	stack->instance = room->event.instance;
	stack->stack_pointer = room->walk.registers.REGS_SP;
	stack->layout = room->chain.layout;
	stack->depth = room->walk.depth;
	links = (u64)stack->count * sizeof(struct chain_link);
	cfas = (u64)stack->depth * sizeof(u64);
	/* So that the verifier sees the comparisons that the compiler made. */
	barrier_var(links);
	barrier_var(cfas);
	if (links <= sizeof(stack->links) && cfas <= sizeof(stack->cfas) &&
	    !bpf_probe_read_kernel((u8 *)stack->links + links, cfas,
				   room->cfas) &&
	    !send(room->event.payer, stack, MIXED_STACK_HEADER + links + cfas,
		  can_wait()))
		return true;
	__sync_fetch_and_add(&lost.stack_frames, 1);
	return false;
}

/*
 * Hands the frames of a runtime in the room of @kind to user space, if they may be new
 * there with the native stack @native. Returns the ID of both.
 */
__noinline u64 publish_mixed_stack(u32 kind, u64 native)
{
	struct stack_scratch *room = scratch_room(kind);
	u64 id, *slot;

	if (!room)
		return STACK_MISSED;
	id = mixed_stack_id(room, native);
	slot = unseen(id);
	/* What the native stack is must have come before. */
	if (!slot || unseen(native))
		return id;
	publish_all_functions(kind);
	if (send_mixed_stack(kind, id, native))
		*slot = id;
	return id;
}

#endif
