/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Reads the control frames of CRuby. A thread-local variable leads to the execution
 * context of the current thread or fiber, whose control frames lie one behind the other.
 * A frame with the flag FINISH begins an activation of the function that interprets
 * Ruby. User space pairs activations with the native frames of this function.
 *
 * shared/languages/src/ruby/walk.rs has the same algorithm for user space. Change both
 * together. The offsets of every version are in layout.rs beside it.
 */
#ifndef SYSTEMSCOPE_RUBY_H
#define SYSTEMSCOPE_RUBY_H

#include "languages/language.h"
#include "languages/memory_window.h"
#include "task.h"

/* Layout of a version of Ruby. */
struct ruby_layout {
	/* Distance from the runtime's base to global_symbols (symbol.c). */
	u64 symbols;
	/* Size of a control frame. */
	u16 frame_bytes;
	/*
	 * In rb_iseq_constant_body: the line of each position that has one, their
	 * number, and the positions.
	 */
	u16 body_lines;
	u16 body_count;
	u16 body_index;
	/* Size of an entry of the lines. */
	u16 line_bytes;
	/* Offset of the characters in an embedded string. */
	u16 embedded;
	/*
	 * In rb_thread_t: the native thread, or 0 if its fields are in rb_thread_t; and
	 * the place in the list of waiters for the lock.
	 */
	u16 thread_native;
	u16 thread_node;
	/* In the native thread: its condition, and its ID. */
	u16 native_condition;
	u16 native_id;
	/* In rb_ractor_t: the holder of the lock, or 0 if unknown. */
	u16 ractor_owner;
	u16 unused;
};

USER_SPACE_KNOWS(struct, ruby_layout);

/* rb_execution_context_t of vm_core.h: the stack of values, its words, the frame. */
#define RUBY_STACK 0
#define RUBY_STACK_WORDS 1
#define RUBY_FRAME 2
/* No stack is larger. */
#define MAX_RUBY_WORDS (1ULL << 32)

/* rb_control_frame_t. */
#define RUBY_FRAME_PC 0
#define RUBY_FRAME_ISEQ 16
#define RUBY_FRAME_ENVIRONMENT 32

/* An environment's method entry, and its flags, from the word two before it. */
#define RUBY_ENVIRONMENT_METHOD 0
#define RUBY_ENVIRONMENT_FLAGS 16
#define RUBY_ENVIRONMENT_BYTES 24

/* enum vm_frame_env_flags: kinds of frames, and the flag of an activation. */
#define RUBY_KIND 0x7fff0001U
#define RUBY_C_FUNCTION 0x55550001U
#define RUBY_DUMMY 0x79990001U
#define RUBY_FINISH 0x20U

/* enum imemo_type, in the flags of an object. */
#define RUBY_MEMO_TYPE(flags) ((flags) >> 12 & 15)
#define RUBY_MEMO_SVAR 2
#define RUBY_MEMO_METHOD 6

/* struct rb_iseq_struct, and struct rb_iseq_constant_body of vm_core.h. */
#define RUBY_ISEQ_BODY 16
#define RUBY_BODY_CODE 8
#define RUBY_BODY_PATH 64
#define RUBY_BODY_LABEL 80
#define RUBY_BODY_BYTES 160

/* Maximum position in a function's code, in words. */
#define MAX_RUBY_INSTRUCTIONS (1ULL << 28)

/* Read of a chain in progress. */
struct ruby_walk {
	u64 frame;
	/* End of the frames. */
	u64 end;
	/* Fields of the frame that ruby_step() notes. As variables they would take stack. */
	u64 current_pc;
	u64 current_iseq;
	u64 environment;
	/* Last iseq, or 0, with its body and its code. */
	u64 iseq;
	u64 body;
	u64 code;
	u32 checksum;
	struct memory_window frames;
	struct memory_window environments;
	/* Bytes of the last body, and space for a word at any 8-bit offset. */
	u8 bytes[256 + sizeof(u64)];
};

static __always_inline u64 ruby_body_word(struct ruby_walk *walk, u32 offset)
{
	asm volatile("%0 &= 255" : "+r"(offset));
	return *(u64 *)(walk->bytes + offset);
}

/* The dynamic thread vector of a thread is the second word at its thread pointer. */
#define DTV_OF_THREAD 8
#define DTV_ENTRY_BYTES 16
#define MAX_TLS_MODULES 65536

/*
 * Returns the current thread's execution context; 0 if it has none. The functions below
 * use one word for several values, to save stack.
 */
static __always_inline u64 ruby_context(u64 base, u64 self)
{
	/* The TLS module and the offset of the variable: tls_index of glibc. */
	u64 words[2], module, offset;

	if (!read_user(words, sizeof(words), base))
		return 0;
	module = words[0];
	offset = words[1];
	if (!module || module >= MAX_TLS_MODULES ||
	    !read_user(words, sizeof(u64), self + DTV_OF_THREAD) ||
	    !read_user(words, sizeof(u64),
		       words[0] + module * DTV_ENTRY_BYTES) ||
	    !words[0] || words[0] == -1ULL ||
	    !read_user(words, sizeof(u64), words[0] + offset))
		return 0;
	return words[0];
}

/* Finds the innermost control frame of the thread whose pthread_self() is @self. */
static __always_inline enum chain_end
ruby_start(struct chain_walk *chain, struct language_layout *of_version,
	   u64 self)
{
	struct ruby_walk *walk = CHAIN_STATE(chain, struct ruby_walk);
	u64 context, words[3];

	context = ruby_context(chain->base, self);
	if (!context || !read_user(words, sizeof(words), context) ||
	    !words[RUBY_STACK] || words[RUBY_STACK_WORDS] > MAX_RUBY_WORDS)
		return CHAIN_NO_THREAD;
	walk->frame = words[RUBY_FRAME];
	walk->end = words[RUBY_STACK] + words[RUBY_STACK_WORDS] * sizeof(u64);
	walk->iseq = 0;
	walk->frames.length = 0;
	walk->environments.length = 0;
	if (walk->frame < words[RUBY_STACK])
		return CHAIN_NO_THREAD;
	return CHAIN_GOES_ON;
}

/* Reads the body of @iseq. Returns CHAIN_GOES_ON, or the reason of a failure. */
static __always_inline enum chain_end
read_ruby_body(struct ruby_walk *walk, struct ruby_layout *layout, u64 iseq)
{
	u64 checksum;

	walk->iseq = 0;
	if (iseq % sizeof(u64))
		return CHAIN_BROKEN;
	if (!read_user(&walk->body, sizeof(walk->body),
		       iseq + RUBY_ISEQ_BODY) ||
	    !read_user(walk->bytes, RUBY_BODY_BYTES, walk->body))
		return CHAIN_READ_FAILED;
	if (walk->body % sizeof(u64))
		return CHAIN_BROKEN;
	walk->code = ruby_body_word(walk, RUBY_BODY_CODE);
	/* The first word has the kind and the size of the code. */
	checksum = hash_word(0, ruby_body_word(walk, 0));
	checksum = hash_word(checksum, walk->code);
	checksum = hash_word(checksum, ruby_body_word(walk, RUBY_BODY_PATH));
	checksum = hash_word(checksum, ruby_body_word(walk, RUBY_BODY_LABEL));
	checksum =
		hash_word(checksum, ruby_body_word(walk, layout->body_lines));
	checksum = hash_word(checksum,
			     (u32)ruby_body_word(walk, layout->body_count));
	checksum =
		hash_word(checksum, ruby_body_word(walk, layout->body_index));
	walk->checksum = checksum >> 32;
	walk->iseq = iseq;
	return CHAIN_GOES_ON;
}

/*
 * Returns the ID of the method whose entry is @entry, or 0. The entry may be behind the
 * special variables of the frame. The words go to the bytes of the last body, which are
 * of no more use, to save stack.
 */
static __always_inline u64 ruby_method_id(struct ruby_walk *walk, u64 entry)
{
	/* rb_method_entry_t: flags, class, definition. */
	u64 *words = (u64 *)walk->bytes;

	if (!read_user(words, 3 * sizeof(u64), entry))
		return 0;
	if (RUBY_MEMO_TYPE(words[0]) == RUBY_MEMO_SVAR &&
	    !read_user(words, 3 * sizeof(u64), words[1]))
		return 0;
	/* The definition's original_id is its fifth word. */
	if (RUBY_MEMO_TYPE(words[0]) != RUBY_MEMO_METHOD ||
	    !read_user(words, sizeof(u64), words[2] + 32))
		return 0;
	return words[0];
}

/* Notes the current frame of @chain, and steps to its caller. */
static __always_inline enum chain_end
ruby_step(struct chain_walk *chain, struct language_layout *of_version,
	  struct mixed_stack *stack)
{
	struct ruby_walk *walk = CHAIN_STATE(chain, struct ruby_walk);
	struct ruby_layout *layout = LAYOUT_OF(of_version, struct ruby_layout);
	u64 frame = walk->frame, position, id;
	enum chain_end end;
	u32 flags;

	if (frame >= walk->end)
		return CHAIN_WHOLE;
	if (stack->count >= CHAIN_DEPTH)
		return CHAIN_TOO_DEEP;
	if (frame % sizeof(u64))
		return CHAIN_BROKEN;
	if (!read_window(&walk->frames, frame, layout->frame_bytes,
			 WINDOW_UPWARDS))
		return CHAIN_READ_FAILED;
	walk->frame = frame + layout->frame_bytes;
	walk->current_pc = window_word(&walk->frames, frame, RUBY_FRAME_PC);
	walk->current_iseq = window_word(&walk->frames, frame, RUBY_FRAME_ISEQ);
	walk->environment =
		window_word(&walk->frames, frame, RUBY_FRAME_ENVIRONMENT) -
		RUBY_ENVIRONMENT_FLAGS;
	if (walk->environment % sizeof(u64))
		return CHAIN_BROKEN;
	if (!read_window(&walk->environments, walk->environment,
			 RUBY_ENVIRONMENT_BYTES, WINDOW_DOWNWARDS))
		return CHAIN_READ_FAILED;
	flags = window_word(&walk->environments, walk->environment,
			    RUBY_ENVIRONMENT_FLAGS);
	/* The frame at the bottom runs nothing. */
	if ((flags & RUBY_KIND) == RUBY_DUMMY)
		return CHAIN_GOES_ON;
	if ((flags & RUBY_KIND) == RUBY_C_FUNCTION) {
		id = ruby_method_id(walk, window_word(&walk->environments,
						      walk->environment,
						      RUBY_ENVIRONMENT_METHOD));
		/* Bodies have even addresses. */
		note_frame(chain, stack, id << 1 | 1, 0, 0);
	} else if (walk->current_iseq && walk->current_pc) {
		if (walk->current_iseq != walk->iseq) {
			end = read_ruby_body(walk, layout, walk->current_iseq);
			if (end != CHAIN_GOES_ON)
				return end;
		}
		position = (walk->current_pc - walk->code) / sizeof(u64);
		if (walk->current_pc < walk->code ||
		    position >= MAX_RUBY_INSTRUCTIONS)
			return CHAIN_BROKEN;
		note_frame(chain, stack, walk->body, position, walk->checksum);
	}
	if (flags & RUBY_FINISH)
		return note_anchor(chain, stack, ANCHOR_ACTIVATION);
	return CHAIN_GOES_ON;
}

/* Places of the pieces of a function in the copy. */
#define RUBY_OBJECT_BYTES 40
#define RUBY_TEXT_BYTES 408
#define RUBY_INDEX_BYTES 2048
#define RUBY_LINES_BYTES 12288
#define RUBY_PATH_START RUBY_BODY_BYTES
#define RUBY_PATH_TEXT_START (RUBY_PATH_START + RUBY_OBJECT_BYTES)
#define RUBY_PATH_DATA_START (RUBY_PATH_TEXT_START + RUBY_TEXT_BYTES)
#define RUBY_LABEL_START (RUBY_PATH_DATA_START + RUBY_TEXT_BYTES)
#define RUBY_LABEL_DATA_START (RUBY_LABEL_START + RUBY_TEXT_BYTES)
#define RUBY_INDEX_START (RUBY_LABEL_DATA_START + RUBY_TEXT_BYTES)
#define RUBY_LINES_START (RUBY_INDEX_START + RUBY_INDEX_BYTES)

_Static_assert(RUBY_LINES_START + RUBY_LINES_BYTES <= FUNCTION_BYTES,
	       "a function fits");

/* struct RBasic, RString and RArray. */
#define RUBY_OBJECT_TYPE 0x1f
#define RUBY_STRING 5
#define RUBY_ARRAY 7
/* The characters of a string are elsewhere; the elements of an array are not. */
#define RUBY_FLAG_1 0x2000
#define RUBY_STRING_LENGTH 16
#define RUBY_STRING_POINTER 24
#define RUBY_ARRAY_EMBEDDED 16
#define RUBY_ARRAY_POINTER 32

/* Words of a string's object. */
#define RUBY_TEXT_WORDS 4

/* Returns space for a few words behind the copy of a function, to save stack. */
static __always_inline u64 *ruby_words(struct interpreted_function *function)
{
	return (u64 *)(function->bytes + FUNCTION_BYTES - 64);
}

/*
 * Copies the string at @object->address to @start, and its characters to @data_start if
 * they are elsewhere.
 */
static __always_inline void
read_ruby_text(struct interpreted_function *function,
	       struct ruby_layout *layout, struct function_piece *object,
	       struct function_piece *data, u32 start, u32 data_start)
{
	u64 *words = ruby_words(function);

	if (!read_user(words, RUBY_TEXT_WORDS * sizeof(u64), object->address))
		return;
	if (words[0] & RUBY_FLAG_1) {
		read_piece(function, object, start, RUBY_TEXT_BYTES,
			   RUBY_TEXT_WORDS * sizeof(u64));
		data->address = words[3];
		read_piece(function, data, data_start, RUBY_TEXT_BYTES,
			   words[2]);
		return;
	}
	/* The length is in the flags before 3.2. */
	if (layout->embedded == RUBY_STRING_LENGTH)
		words[2] = RUBY_OBJECT_BYTES - RUBY_STRING_LENGTH;
	read_piece(function, object, start, RUBY_TEXT_BYTES,
		   layout->embedded + (words[2] & 0xffffff));
}

/*
 * Returns element number @index of the array at @address. Returns 0 if a read fails. All
 * longer arrays have their elements elsewhere.
 */
static __always_inline u64 ruby_element(struct interpreted_function *function,
					u64 address, u64 index)
{
	u64 *words = ruby_words(function);

	if (!read_user(words, RUBY_OBJECT_BYTES, address) ||
	    (words[0] & RUBY_OBJECT_TYPE) != RUBY_ARRAY)
		return 0;
	address = words[0] & RUBY_FLAG_1 ? address + RUBY_ARRAY_EMBEDDED :
					   words[RUBY_ARRAY_POINTER / 8];
	if (!read_user(words, sizeof(u64), address + index * 8))
		return 0;
	return words[0];
}

/* tLAST_OP_ID of id.h: IDs of operators are their serial numbers. */
#define RUBY_LAST_OPERATOR 169
/* ID_ENTRY_UNIT and ID_ENTRY_SIZE of symbol.c, and the array in global_symbols. */
#define RUBY_IDS_AT_ONCE 512
#define RUBY_WORDS_OF_ID 2
#define RUBY_SYMBOLS_IDS 16

/*
 * Fills @function with the name of the function in C that @link names by its ID: a
 * pointer to the string, as if it were at the address @link->code, and the string.
 */
static __always_inline u64 read_ruby_name(struct interpreted_function *function,
					  struct ruby_layout *layout, u64 base,
					  struct chain_link *link)
{
	struct function_piece *pieces = function->pieces;
	u64 ids, id = link->code >> 1;
	u64 number = id > RUBY_LAST_OPERATOR ? id >> 4 : id;

	if (!read_user(&ids, sizeof(ids),
		       base + layout->symbols + RUBY_SYMBOLS_IDS))
		return 0;
	ids = ruby_element(function, ids, number / RUBY_IDS_AT_ONCE);
	if (!ids)
		return 0;
	pieces[0].address = link->code;
	pieces[0].start = 0;
	pieces[0].length = sizeof(u64);
	pieces[1].address = ruby_element(
		function, ids, number % RUBY_IDS_AT_ONCE * RUBY_WORDS_OF_ID);
	*(u64 *)function->bytes = pieces[1].address;
	read_ruby_text(function, layout, &pieces[1], &pieces[2], sizeof(u64),
		       sizeof(u64) + RUBY_TEXT_BYTES);
	return sizeof(u64) + 2 * RUBY_TEXT_BYTES;
}

/* Returns the word at @offset of the body at the beginning of the copy. */
static __always_inline u64
copied_body_word(struct interpreted_function *function, u32 offset)
{
	asm volatile("%0 &= 255" : "+r"(offset));
	return *(u64 *)(function->bytes + offset);
}

/* Fills @function with the function of @link. Returns the number of its bytes. */
static __always_inline u64 ruby_read_function(
	struct interpreted_function *function,
	struct language_layout *of_version, struct chain_link *link, u64 base)
{
	struct ruby_layout *layout = LAYOUT_OF(of_version, struct ruby_layout);
	struct function_piece *pieces = function->pieces;
	u64 bytes;

	if (link->code & 1)
		return read_ruby_name(function, layout, base, link);
	pieces[0].address = link->code;
	read_piece(function, &pieces[0], 0, RUBY_BODY_BYTES, RUBY_BODY_BYTES);
	if (!pieces[0].length)
		return 0;
	/* The path is a string, or an array whose first element is the path. */
	pieces[1].address = *(u64 *)(function->bytes + RUBY_BODY_PATH);
	pieces[2].address = pieces[1].address;
	read_piece(function, &pieces[1], RUBY_PATH_START, RUBY_OBJECT_BYTES,
		   RUBY_OBJECT_BYTES);
	if ((function->bytes[RUBY_PATH_START] & RUBY_OBJECT_TYPE) ==
	    RUBY_ARRAY) {
		/* The array has two elements, which are in the object. */
		pieces[2].address = *(u64 *)(function->bytes + RUBY_PATH_START +
					     RUBY_ARRAY_EMBEDDED);
	} else {
		pieces[1].length = 0;
	}
	read_ruby_text(function, layout, &pieces[2], &pieces[3],
		       RUBY_PATH_TEXT_START, RUBY_PATH_DATA_START);
	pieces[4].address = *(u64 *)(function->bytes + RUBY_BODY_LABEL);
	read_ruby_text(function, layout, &pieces[4], &pieces[5],
		       RUBY_LABEL_START, RUBY_LABEL_DATA_START);
	/* struct succ_index_table of iseq.c: 54 positions, then blocks of 512. */
	bytes = *(u32 *)(function->bytes + sizeof(u32));
	bytes = bytes > 54 ? 48 + (bytes - 54 + 511) / 512 * 80 : 48;
	pieces[6].address = copied_body_word(function, layout->body_index);
	read_piece(function, &pieces[6], RUBY_INDEX_START, RUBY_INDEX_BYTES,
		   bytes);
	bytes = (u32)copied_body_word(function, layout->body_count);
	pieces[7].address = copied_body_word(function, layout->body_lines);
	read_piece(function, &pieces[7], RUBY_LINES_START, RUBY_LINES_BYTES,
		   bytes * layout->line_bytes);
	return RUBY_LINES_START + (u64)pieces[7].length;
}

/* Offsets in rb_execution_context_t and in rb_thread_t. */
#define RUBY_CONTEXT_THREAD 48
#define RUBY_THREAD_RACTOR 24
/* Size of a condition variable of glibc. */
#define CONDITION_BYTES 48

/*
 * Returns where @thread keeps its ID and its condition; 0 if a read fails. @word: space
 * for a word.
 */
static __always_inline u64 ruby_native_thread(struct ruby_layout *layout,
					      u64 thread, u64 *word)
{
	if (!layout->thread_native)
		return thread;
	if (!read_user(word, sizeof(*word), thread + layout->thread_native))
		return 0;
	return *word;
}

/*
 * Returns the ID of the thread that holds the global lock (GVL), if the current thread
 * waits for it at @futex. A waiter is in the lock's list, and waits on the condition of
 * its own thread. It waits on the same condition for other purposes, but then it is in
 * no list.
 */
static __always_inline u32 ruby_lock_holder(struct language_layout *of_version,
					    u64 base, u64 futex)
{
	struct ruby_layout *layout = LAYOUT_OF(of_version, struct ruby_layout);
	u64 word, thread, native;

	if (!layout->ractor_owner)
		return 0;
	word = ruby_context(base, thread_pointer(current_task()));
	if (!word ||
	    !read_user(&word, sizeof(word), word + RUBY_CONTEXT_THREAD))
		return 0;
	thread = word;
	native = ruby_native_thread(layout, thread, &word);
	if (!native ||
	    futex - (native + layout->native_condition) >= CONDITION_BYTES ||
	    !read_user(&word, sizeof(word), thread + layout->thread_node) ||
	    !word || word == thread + layout->thread_node ||
	    !read_user(&word, sizeof(word), thread + RUBY_THREAD_RACTOR) ||
	    !read_user(&word, sizeof(word), word + layout->ractor_owner))
		return 0;
	/* Without an owner the lock passes to the next thread. */
	native = word ? ruby_native_thread(layout, word, &word) : 0;
	word = 0;
	if (native)
		read_user(&word, sizeof(u32), native + layout->native_id);
	return ((u32)word & ~LOCK_LANGUAGE) | LOCK_IS_CERTAIN;
}

#endif
