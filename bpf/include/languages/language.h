/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Frames that a language's runtime keeps for the functions that it interprets: they are
 * in memory, each leads to its caller, and native frames lie between them. A chain
 * is the frames of one thread, leaf first. Where the runtime was entered anew it leaves
 * something on the native stack, an anchor, which lies in the native frame that runs the
 * frames before it in the chain. User space names the frames, and puts them between the
 * native ones: shared/languages/src/interleave.rs.
 *
 * A header beside this one reads the frames of its language; languages.h lists them.
 */
#ifndef SYSTEMSCOPE_LANGUAGE_H
#define SYSTEMSCOPE_LANGUAGE_H

#include "events.h"
#include "stacks/user_memory.h"

/* A runtime in a process. */
struct language_runtime {
	/* enum language; LANGUAGE_NONE if there is no runtime. */
	u32 language;
	/* Index of its layout. */
	u32 layout;
	/* Address of its own that leads to its threads. */
	u64 base;
};

/*
 * Runtimes of a process that are known. A stack has the frames of the first one that the
 * thread belongs to.
 */
#define PROCESS_RUNTIMES 2

#define LANGUAGE_LAYOUT_BYTES 128
#define LANGUAGE_LAYOUTS 256

/* A version's layout: a struct of the language's header. */
struct language_layout {
	u64 words[LANGUAGE_LAYOUT_BYTES / sizeof(u64)];
};

USER_SPACE_KNOWS(struct, language_layout);

/* User space fills it, each layout once. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LANGUAGE_LAYOUTS);
	__type(key, u32);
	__type(value, struct language_layout);
} language_layouts SEC(".maps");

static __always_inline struct language_layout *find_layout(u32 index)
{
	return bpf_map_lookup_elem(&language_layouts, &index);
}

/* How the walk along a chain ended. */
enum chain_end {
	/* It goes on. */
	CHAIN_GOES_ON,
	/* The thread is none of the runtime's. */
	CHAIN_NO_THREAD,
	/* At the thread's first function. */
	CHAIN_WHOLE,
	/* A frame could not be read. */
	CHAIN_READ_FAILED,
	/* There are more frames than are kept. */
	CHAIN_TOO_DEEP,
	/* Something is there that no runtime leaves. */
	CHAIN_BROKEN,
};

USER_SPACE_KNOWS(enum, chain_end);

/* Frames and anchors that are kept at most. */
#define CHAIN_DEPTH 1024

/* A frame, or an anchor. */
struct chain_link {
	/* Address of what the function is made of, or of the anchor. */
	u64 code;
	/* Position in that, in units of its language; CHAIN_ANCHOR for an anchor. */
	s32 instruction;
	/* Tells a function from another that has its address later. */
	u32 checksum;
};

#define CHAIN_ANCHOR (-0x80000000LL)

/* The frames of a runtime and where native ones are, leaf first. */
struct mixed_stack {
	u32 kind;
	u32 count;
	u64 hash;
	/* ID of the native stack; that of a dump is the same as this one's. */
	u64 native;
	u64 instance;
	u32 pid;
	/* enum chain_end */
	u32 end;
	/* The stack pointer at the leaf. */
	u64 stack_pointer;
	/* Index of the runtime's layout. */
	u32 layout;
	/* How many native frames have a CFA here. */
	u32 depth;
	struct chain_link links[CHAIN_DEPTH];
	/* They are sent right behind the last link. */
	u64 cfas[STACK_DEPTH];
};

#define MIXED_STACK_HEADER __builtin_offsetof(struct mixed_stack, links)

/* Capacity for what a language keeps during a walk, in bytes. */
#define CHAIN_STATE_BYTES 1536

/* A walk in progress. */
struct chain_walk {
	/* enum language */
	u32 language;
	/* Index of the layout. */
	u32 layout;
	u64 base;
	/* 0 if the thread has no frames. */
	u64 hash;
	/* A struct of the language's header. */
	u64 state[CHAIN_STATE_BYTES / sizeof(u64)];
};

/* The room for a walk as the @type of a language's header. */
#define CHAIN_STATE(walk, type)                                                \
	({                                                                     \
		_Static_assert(sizeof(type) <= CHAIN_STATE_BYTES, #type);      \
		(type *)(walk)->state;                                         \
	})

/* The layout as the @type of a language's header. */
#define LAYOUT_OF(layout, type)                                                \
	({                                                                     \
		_Static_assert(sizeof(type) <= LANGUAGE_LAYOUT_BYTES, #type);  \
		(type *)(layout)->words;                                       \
	})

/* Notes a frame; the caller has made sure that there is room for one. */
static __always_inline void note_frame(struct chain_walk *walk,
				       struct mixed_stack *stack, u64 code,
				       s32 instruction, u32 checksum)
{
	struct chain_link *link;
	u32 index = stack->count;

	stack->count = index + 1;
	index &= CHAIN_DEPTH - 1;
	barrier_var(index);
	link = &stack->links[index & (CHAIN_DEPTH - 1)];
	link->code = code;
	link->instruction = instruction;
	link->checksum = checksum;
	walk->hash = hash_word(hash_word(walk->hash, code),
			       *(u64 *)&link->instruction);
}

static __always_inline enum chain_end
note_anchor(struct chain_walk *walk, struct mixed_stack *stack, u64 address)
{
	struct chain_link *link;
	u32 index = stack->count;

	if (index >= CHAIN_DEPTH)
		return CHAIN_TOO_DEEP;
	stack->count = index + 1;
	barrier_var(index);
	link = &stack->links[index & (CHAIN_DEPTH - 1)];
	link->code = address;
	link->instruction = CHAIN_ANCHOR;
	link->checksum = 0;
	walk->hash = hash_word(walk->hash, address);
	return CHAIN_GOES_ON;
}

/* Memory that tells what a function is, and where in `bytes` a copy of it is. */
struct function_piece {
	u64 address;
	u32 start;
	u32 length;
};

#define FUNCTION_PIECES 4
#define FUNCTION_BYTES (17 * 1024)

/*
 * A function, as it is in memory: a program may end before user space looks. What
 * is longer is left to user space to read.
 */
struct interpreted_function {
	u32 kind;
	u32 pid;
	u64 instance;
	u64 code;
	u32 checksum;
	/* Index of the runtime's layout. */
	u32 layout;
	struct function_piece pieces[FUNCTION_PIECES];
	/* Only as many are sent as there are. */
	u8 bytes[FUNCTION_BYTES];
};

#define FUNCTION_HEADER __builtin_offsetof(struct interpreted_function, bytes)

USER_SPACE_KNOWS(struct, interpreted_function);

/*
 * Copies @length bytes, of no more than @most, from where @piece is to @start; none if
 * there are more.
 */
static __always_inline void read_piece(struct interpreted_function *function,
				       struct function_piece *piece, u32 start,
				       u64 most, u64 length)
{
	piece->start = start;
	piece->length = 0;
	barrier_var(length);
	if (length > most)
		return;
	if (read_user(function->bytes + start, length, piece->address))
		piece->length = length;
}

#endif
