/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Sends a runtime's frames separately from the native frames, because one native stack
 * can occur with several stacks of the runtime. Both together have an ID of their own.
 */
#ifndef SYSTEMSCOPE_MIXED_STACKS_H
#define SYSTEMSCOPE_MIXED_STACKS_H

#include "events.h"
#include "languages/languages.h"
#include "stacks/seen_stacks.h"
#include "stacks/walk.h"

/*
 * Returns the ID of the native stack @native together with the runtime's frames in
 * @scratch, if any.
 */
static __always_inline u64 mixed_stack_id(struct stack_scratch *scratch,
					  u64 native)
{
	u64 hash = scratch->chain.hash;

	return hash ? stack_id(hash_word(native, hash)) : native;
}

/*
 * Sends the function of the runtime's frame number @index in the scratch of @kind,
 * unless user space has it. This C function is global and takes scalars, so the
 * verifier checks it once.
 */
__noinline int publish_function(u32 kind, u32 index)
{
	struct stack_scratch *scratch = find_stack_scratch(kind);
	struct mixed_stack *stack = find_mixed_scratch(kind);
	struct interpreted_function *function;
	struct language_layout *layout;
	struct chain_link *link;
	u64 hash, size, *slot;

	function = bpf_map_lookup_elem(&interpreted_functions, &kind);
	if (!scratch || !stack || !function)
		return 0;
	layout = find_layout(scratch->chain.layout);
	if (!layout)
		return 0;
	link = &stack->links[index & (CHAIN_DEPTH - 1)];
	if (link->instruction <= CHAIN_LAST_MARK)
		return 0;
	hash = hash_word(scratch->event.instance, link->code);
	hash = stack_id(hash_word(hash, link->checksum));
	slot = unseen(hash);
	if (!slot)
		return 0;
	__builtin_memset(function->pieces, 0, sizeof(function->pieces));
	size = read_function(function, scratch->chain.language, layout, link,
			     scratch->chain.base);
	if (!size)
		return 0;
	function->kind = EVENT_INTERPRETED_FUNCTION;
	function->pid = scratch->event.pid;
	function->instance = scratch->event.instance;
	function->layout = scratch->chain.layout;
	function->code = link->code;
	function->checksum = link->checksum;
	size += FUNCTION_HEADER;
	barrier_var(size);
	/* Older kernels have no stack left for another call. */
	if (size <= sizeof(*function) &&
	    take_share(scratch->event.payer, size) &&
	    !bpf_ringbuf_output(&events, function, size, can_wait()))
		*slot = hash;
	return 0;
}

#define FUNCTIONS_AT_ONCE 32

/* Publishes at most FUNCTIONS_AT_ONCE functions, from frame @first on. */
__noinline int publish_some_functions(u32 kind, u32 first)
{
	struct mixed_stack *stack = find_mixed_scratch(kind);

	if (!stack)
		return 0;
	for (u32 i = 0; i < FUNCTIONS_AT_ONCE; i++) {
		if (first + i >= stack->count)
			break;
		publish_function(kind, first + i);
	}
	return 0;
}

/* Publishes the functions of all frames. */
static __always_inline void publish_all_functions(u32 kind)
{
	struct mixed_stack *stack = find_mixed_scratch(kind);

	if (!stack)
		return;
	for (u32 first = 0; first < CHAIN_DEPTH; first += FUNCTIONS_AT_ONCE) {
		if (first >= stack->count)
			break;
		publish_some_functions(kind, first);
	}
}

/* Same as publish_all_functions(), but not inlined: dump_mixed_stack() calls it. */
__noinline int publish_functions(u32 kind)
{
	publish_all_functions(kind);
	return 0;
}

/*
 * Sends the runtime's frames in the scratch of @kind, as part of the stack @hash with
 * the native stack @native. Returns whether they were sent.
 */
__noinline int send_mixed_stack(u32 kind, u64 hash, u64 native)
{
	struct stack_scratch *scratch = find_stack_scratch(kind);
	struct mixed_stack *stack = find_mixed_scratch(kind);
	u64 links, cfas;

	if (!scratch || !stack)
		return false;
	stack->kind = EVENT_MIXED_STACK;
	stack->hash = hash;
	stack->native = native;
	stack->pid = scratch->event.pid;
	stack->instance = scratch->event.instance;
	stack->stack_pointer = scratch->walk.registers.REGS_SP;
	stack->layout = scratch->chain.layout;
	stack->depth = scratch->walk.depth;
	links = (u64)stack->count * sizeof(struct chain_link);
	cfas = (u64)stack->depth * sizeof(u64);
	/* The barriers keep the comparisons visible for the verifier. */
	barrier_var(links);
	barrier_var(cfas);
	if (links <= sizeof(stack->links) && cfas <= sizeof(stack->cfas) &&
	    !bpf_probe_read_kernel((u8 *)stack->links + links, cfas,
				   scratch->cfas) &&
	    !send(scratch->event.payer, stack,
		  MIXED_STACK_HEADER + links + cfas, can_wait()))
		return true;
	__sync_fetch_and_add(&lost.stack_frames, 1);
	return false;
}

/*
 * Sends the runtime's frames in the scratch of @kind together with the native stack
 * @native, unless user space has both together. Returns the ID of both together.
 */
__noinline u64 publish_mixed_stack(u32 kind, u64 native)
{
	struct stack_scratch *scratch = find_stack_scratch(kind);
	u64 id, *slot;

	if (!scratch)
		return STACK_MISSED;
	id = mixed_stack_id(scratch, native);
	slot = unseen(id);
	/* User space must get the native stack first. */
	if (!slot || unseen(native))
		return id;
	publish_all_functions(kind);
	if (send_mixed_stack(kind, id, native))
		*slot = id;
	return id;
}

#endif
