/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Reads the frames of a made-up language, whose runtime and module are in
 * shared/collect/tests/toy.
 */
#ifndef SYSTEMSCOPE_TOY_H
#define SYSTEMSCOPE_TOY_H

#include "languages/language.h"

#define TOY_THREADS 4
#define TOY_NAME_BYTES 24

struct toy_layout {
	/* Offsets in a frame. */
	u16 caller;
	u16 function;
	u16 line;
	u16 unused;
};

USER_SPACE_KNOWS(struct, toy_layout);

struct toy_walk {
	u64 frame;
};

static __always_inline enum chain_end
toy_start(struct chain_walk *chain, struct language_layout *layout, u64 self)
{
	struct toy_walk *walk = CHAIN_STATE(chain, struct toy_walk);
	/* The thread, and its innermost frame. */
	u64 thread[2];

	for (u32 i = 0; i < TOY_THREADS; i++) {
		if (!read_user(thread, sizeof(thread),
			       chain->base + i * sizeof(thread)))
			return CHAIN_NO_THREAD;
		if (thread[0] != self)
			continue;
		walk->frame = thread[1];
		return CHAIN_GOES_ON;
	}
	return CHAIN_NO_THREAD;
}

static __always_inline enum chain_end
toy_step(struct chain_walk *chain, struct language_layout *of_version,
	 struct mixed_stack *stack)
{
	struct toy_walk *walk = CHAIN_STATE(chain, struct toy_walk);
	struct toy_layout *layout = LAYOUT_OF(of_version, struct toy_layout);
	u64 caller, function, name, frame = walk->frame;
	enum chain_end end = CHAIN_GOES_ON;
	u32 line;

	if (!frame)
		return CHAIN_WHOLE;
	if (stack->count >= CHAIN_DEPTH)
		return CHAIN_TOO_DEEP;
	if (!read_user(&caller, sizeof(caller), frame + layout->caller) ||
	    !read_user(&function, sizeof(function), frame + layout->function) ||
	    !read_user(&line, sizeof(line), frame + layout->line))
		return CHAIN_READ_FAILED;
	if (!function)
		/* An entry, which lies on the C stack. */
		end = note_anchor(chain, stack, frame);
	else if (!read_user(&name, sizeof(name), function))
		end = CHAIN_READ_FAILED;
	else
		note_frame(chain, stack, function, line, name);
	walk->frame = caller;
	return end;
}

static __always_inline u64 toy_read_function(
	struct interpreted_function *function, struct language_layout *layout,
	struct chain_link *link, u64 base)
{
	function->pieces[0].address = link->code;
	read_piece(function, &function->pieces[0], 0, TOY_NAME_BYTES,
		   TOY_NAME_BYTES);
	return function->pieces[0].length;
}

static __always_inline u32 toy_lock_holder(struct language_layout *layout,
					   u64 base, u64 futex)
{
	return 0;
}

#endif
