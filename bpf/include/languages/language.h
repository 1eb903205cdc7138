/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Frames that a language's runtime keeps in memory for the functions that it
 * interprets. Each frame leads to its caller's frame, and native frames lie between
 * them. A chain is the frames of one thread, leaf first. At each new entry of a thread
 * the runtime leaves an anchor on the native stack. The anchor lies in the native frame
 * that runs the frames before it in the chain. User space names the frames, and puts
 * them between the native frames: shared/languages/src/interleave.rs.
 *
 * Each language has a header in this folder, which reads its frames. languages.h lists
 * the languages.
 */
#ifndef SYSTEMSCOPE_LANGUAGE_H
#define SYSTEMSCOPE_LANGUAGE_H

#include "events.h"
#include "registers.h"
#include "stacks/user_memory.h"

/* Runtime of a language in a process. */
struct language_runtime {
	/* enum language; LANGUAGE_NONE if there is no runtime. */
	u32 language;
	/* Index of its layout. */
	u32 layout;
	/* Address in the runtime that leads to its threads. */
	u64 base;
};

/*
 * Maximum runtimes of a process. A stack has the frames of the first runtime that has
 * frames of the thread.
 */
#define PROCESS_RUNTIMES 2

#define LANGUAGE_LAYOUT_BYTES 320
#define LANGUAGE_LAYOUTS 1024

/* Layout of one version of a runtime: a struct of the language's header. */
struct language_layout {
	u64 words[LANGUAGE_LAYOUT_BYTES / sizeof(u64)];
};

USER_SPACE_KNOWS(struct, language_layout);

/* Layouts of runtimes. User space stores each layout once. */
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

/* Reason for the end of a read of a chain. */
enum chain_end {
	/* The read goes on. */
	CHAIN_GOES_ON,
	/* The thread does not belong to the runtime. */
	CHAIN_NO_THREAD,
	/* The read reached the thread's first function. */
	CHAIN_WHOLE,
	/* A frame could not be read. */
	CHAIN_READ_FAILED,
	/* The chain has more frames than the maximum. */
	CHAIN_TOO_DEEP,
	/* A frame has a value that no runtime writes. */
	CHAIN_BROKEN,
	/*
	 * The frames are on the native stack, and the native unwind notes them. No
	 * message has this value or the next one.
	 */
	CHAIN_ON_STACK,
	/* The caller of the frame is native code. */
	CHAIN_LEFT_CODE,
};

USER_SPACE_KNOWS(enum, chain_end);

/* Maximum frames and anchors of a chain. */
#define CHAIN_DEPTH 1024

/* Frame or anchor of a chain. */
struct chain_link {
	/* Address of the function's code, or of the anchor. */
	u64 code;
	/*
	 * Position in the code, in units of its language, or one of the CHAIN_ constants
	 * below. Behind a CHAIN_COMPILED link, a negative position has the lower 31 bits
	 * of an address in the machine code of the function.
	 */
	s32 instruction;
	/* Distinguishes functions that had the same address at different times. */
	u32 checksum;
};

/* The link is an anchor. */
#define CHAIN_ANCHOR (-0x80000000LL)
/*
 * The link is an anchor. The native frames that run the frames before it begin
 * @checksum words below its address.
 */
#define CHAIN_SPAN (-0x7fffffffLL)
/*
 * The link has the upper 33 bits of the addresses in the machine code of the functions
 * behind it.
 */
#define CHAIN_COMPILED (-0x7ffffffeLL)
/*
 * The thread was interrupted at the link's address, in code without unwind tables. The
 * function there may have no frame yet. Then the next such link has the address to
 * which it returns.
 */
#define CHAIN_INTERRUPTED (-0x7ffffffdLL)
/* The link has the code of a function that may be about to make its frame. */
#define CHAIN_BEGINS (-0x7ffffffcLL)
/* Largest of these constants. */
#define CHAIN_LAST_MARK CHAIN_BEGINS

/*
 * Anchors that are no addresses, of a runtime that leaves no anchors on the native stack.
 * User space pairs the activations of the function that interprets the language with the
 * native frames of this function.
 */
enum chain_anchor {
	/* The frames since the last anchor are those of one activation. */
	ANCHOR_ACTIVATION,
	/* The frames behind the anchor are those of another native stack. */
	ANCHOR_OTHER_STACK,
};

USER_SPACE_KNOWS(enum, chain_anchor);

/* Message with the frames of a runtime and the CFAs of the native frames, leaf first. */
struct mixed_stack {
	u32 kind;
	u32 count;
	u64 hash;
	/* ID of the native stack; same as @hash for a dump. */
	u64 native;
	u64 instance;
	u32 pid;
	/* enum chain_end */
	u32 end;
	/* Stack pointer at the leaf. */
	u64 stack_pointer;
	/* Index of the runtime's layout. */
	u32 layout;
	/* Number of native frames with a CFA here. */
	u32 depth;
	struct chain_link links[CHAIN_DEPTH];
	/* CFAs of the native frames. Programs send them right behind the last link. */
	u64 cfas[STACK_DEPTH];
};

#define MIXED_STACK_HEADER __builtin_offsetof(struct mixed_stack, links)

/* Maximum size of a language's state, in bytes. */
#define CHAIN_STATE_BYTES 3072

/* User registers of the thread. */
struct chain_leaf {
	u64 ip;
	u64 sp;
	u64 bp;
	/* Registers with a role in V8: see registers.h. */
	u64 v8_function;
	u64 v8_bytecode;
	u64 v8_offset;
	/* Registers with a role in PHP. */
	u64 php_frame;
	u64 php_instruction;
	/* False if a system call left the code, true if it was interrupted. */
	bool is_exact;
};

/* Maximum words on which a step through generated code depends; a power of two. */
#define CODE_WORDS 8

/* Registers of a frame in code that a runtime generates. */
struct code_frame {
	u64 ip;
	u64 sp;
	u64 bp;
	/* False if ip is a return address, true if the code was interrupted there. */
	bool is_exact;
	/* True if the step depends on bp. */
	bool uses_bp;
	/* Address from which the step read the caller's bp; 0 if bp is unchanged. */
	u64 bp_from;
	/*
	 * Words on which the step depends, besides the word at bp_from: see
	 * unwind_cache.h.
	 */
	u32 word_count;
	struct {
		u64 address;
		u64 value;
	} words[CODE_WORDS];
};

/* Notes that a step depends on the word at @address, which is @value. */
static __always_inline void note_code_word(struct code_frame *frame,
					   u64 address, u64 value)
{
	u32 index = frame->word_count;

	frame->word_count = index + 1;
	index &= CODE_WORDS - 1;
	barrier_var(index);
	frame->words[index & (CODE_WORDS - 1)].address = address;
	frame->words[index & (CODE_WORDS - 1)].value = value;
}

/* Read of a chain in progress. */
struct chain_walk {
	/* enum language */
	u32 language;
	/* Index of the layout. */
	u32 layout;
	u64 base;
	struct chain_leaf leaf;
	/*
	 * Set by a language's start: the chain begins at the registers, if unwind tables
	 * do not describe the code at the ip.
	 */
	bool is_at_leaf;
	/* Hash of the frames; 0 if the thread has none. */
	u64 hash;
	/*
	 * Code that the runtime generates, if its frames are on the native stack; else
	 * empty.
	 */
	u64 code_start;
	u64 code_bytes;
	struct code_frame frame;
	/* A struct of the language's header. */
	u64 state[CHAIN_STATE_BYTES / sizeof(u64)];
};

/* The state as the @type of a language's header. */
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

/* Notes a frame. The caller has checked that the stack is not full. */
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

/*
 * Notes a link that is no frame. @mark: its instruction. The caller has checked that
 * the stack is not full.
 */
static __always_inline void note_link(struct mixed_stack *stack, u64 address,
				      s32 mark, u32 checksum)
{
	struct chain_link *link;
	u32 index = stack->count;

	stack->count = index + 1;
	barrier_var(index);
	link = &stack->links[index & (CHAIN_DEPTH - 1)];
	link->code = address;
	link->instruction = mark;
	link->checksum = checksum;
}

/* Same as note_link(), and the stack's ID depends on the address. */
static __always_inline enum chain_end note_mark(struct chain_walk *walk,
						struct mixed_stack *stack,
						u64 address, s32 mark,
						u32 checksum)
{
	if (stack->count >= CHAIN_DEPTH)
		return CHAIN_TOO_DEEP;
	note_link(stack, address, mark, checksum);
	walk->hash = hash_word(walk->hash, address);
	return CHAIN_GOES_ON;
}

/*
 * Holder of a lock: the ID of a thread, or 0 if unknown, and above it the language of the
 * lock if the wait for the lock is certain. No thread has a larger ID.
 */
#define LOCK_LANGUAGE_SHIFT 24
#define LOCK_LANGUAGE (~0U << LOCK_LANGUAGE_SHIFT)
/* A header of a language returns this with the ID if the wait is certain. */
#define LOCK_IS_CERTAIN (1U << LOCK_LANGUAGE_SHIFT)

static __always_inline u32 holder_in_language(u32 holder, u32 language)
{
	u32 id = holder & ~LOCK_LANGUAGE;

	return holder & LOCK_IS_CERTAIN ? id | language << LOCK_LANGUAGE_SHIFT :
					  id;
}

static __always_inline enum chain_end
note_anchor(struct chain_walk *walk, struct mixed_stack *stack, u64 address)
{
	return note_mark(walk, stack, address, CHAIN_ANCHOR, 0);
}

/* Memory that describes a function, and the place of its copy in @bytes. */
struct function_piece {
	u64 address;
	u32 start;
	u32 length;
};

#define FUNCTION_PIECES 8
#define FUNCTION_BYTES (17 * 1024)

/*
 * Message with a copy of a function's memory, because a process may end before user
 * space can read it. User space reads longer pieces itself.
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
	/* Only the used bytes are sent. */
	u8 bytes[FUNCTION_BYTES];
};

#define FUNCTION_HEADER __builtin_offsetof(struct interpreted_function, bytes)

USER_SPACE_KNOWS(struct, interpreted_function);

/*
 * Copies @length bytes from @piece->address to @start, or none if @length exceeds
 * @most.
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
