/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Reads the frames of V8, the JavaScript engine of Node.js. All code of V8 keeps the
 * frame pointer, so each frame leads to its caller's frame. Where C++ calls JavaScript,
 * an entry frame leads to the frame that called this C++ code. User space names the
 * frames, and puts them in place of the native frames of V8's code.
 *
 * A frame whose context slot has a context runs a JavaScript function. Other frames
 * have their type there. Objects move, but descriptions of functions
 * (SharedFunctionInfo) seldom do. The programs therefore send a description, and the
 * position in the bytecode or in the machine code.
 *
 * shared/languages/src/v8/walk.rs has the same algorithm for user space. Change both
 * together. The offsets of every version are in layout.rs beside it.
 */
#ifndef SYSTEMSCOPE_V8_H
#define SYSTEMSCOPE_V8_H

#include "languages/language.h"
#include "languages/pthread_values.h"

/* Place of a thread's isolate. */
enum v8_isolate_place {
	/* A value of pthread. The base is the address of its key. */
	V8_ISOLATE_OF_KEY,
	/* At a fixed distance from the thread pointer, which is the base. */
	V8_ISOLATE_AT_OFFSET,
	/*
	 * In the thread-local storage of a library. The base is the address of the
	 * module's number and of the offset in it, a tls_index.
	 */
	V8_ISOLATE_IN_MODULE,
};

USER_SPACE_KNOWS(enum, v8_isolate_place);

/* Layout of a version of V8: offsets in bytes from the beginning of each object. */
struct v8_layout {
	/*
	 * In the isolate: frame pointer of the code that called C++, and the same of a
	 * fast call, whose return address is behind it. Both are 0 in JavaScript.
	 */
	u32 c_entry_fp;
	u32 fast_c_call_fp;
	/* Distance from the key of the isolate to a byte that is 1 if the key is created. */
	s32 key_created;
	/* enum v8_isolate_place */
	u16 isolate_place;
	/* In a JSFunction. */
	u16 function_shared;
	/* In a SharedFunctionInfo, from its first field on. */
	u16 info_name;
	u16 info_script;
	/* In the code of a function: its bytecode. */
	u16 code_bytecode;
	/* Value of the slot of a frame at the first bytecode. */
	u16 first_bytecode;
	/* Types of frames. */
	u16 builtin_exit;
	u16 wasm;
};

USER_SPACE_KNOWS(struct, v8_layout);

/* Types of frames that C++ enters through. */
#define V8_ENTRY 1
#define V8_CONSTRUCT_ENTRY 2

/* Slots of a frame, from its frame pointer. */
#define V8_FRAME_START (-64)
#define V8_OUTER_EXIT (-64)
#define V8_BYTECODE_OFFSET (-40)
#define V8_BYTECODE_ARRAY (-32)
#define V8_FUNCTION (-16)
#define V8_CONTEXT (-8)
#define V8_CALLER_FP 0
#define V8_RETURN_ADDRESS 8
#define V8_EXIT_TARGET 24
#define V8_FRAME_BYTES 80

/* Low bits of a pointer to an object, and of a word that may be one. */
#define V8_OBJECT 1
#define V8_OBJECT_MASK 3

/* Address in place of an unknown one. It has no bits above those of an instruction. */
#define V8_UNKNOWN_PC 0x7fffffffULL

/* Maximum length of bytecode. */
#define V8_MAX_BYTECODE (1ULL << 28)

/* Fields of a SharedFunctionInfo that programs read. The first has the code. */
#define V8_INFO_START 8
#define V8_INFO_BYTES 40

/* Bytes of a read of frames. */
#define V8_WINDOW 1024

/* JSFunction that was read. Its object does not move while its thread is current. */
struct v8_function {
	u64 function;
	/* Its SharedFunctionInfo, without the tag. */
	u64 info;
	/* Its code, or its bytecode. */
	u64 code;
	u64 checksum;
};

/* Number of functions that are kept, and bits below those that tell functions apart. */
#define V8_KNOWN_FUNCTIONS 8
#define V8_FUNCTION_SHIFT 6

/* Read of a chain in progress. */
struct v8_walk {
	u64 fp;
	/* Address at which the frame goes on; 0 if it is unknown. */
	u64 pc;
	/*
	 * The next frame, and the address at which the frame that v8_step() notes
	 * goes on. They would take stack as variables.
	 */
	u64 caller;
	u64 current_pc;
	/* First frame since C++ code. */
	u64 first_fp;
	/* Upper 33 bits of the addresses behind the last CHAIN_COMPILED link. */
	u64 upper;
	/* Registers of the leaf; 0 in callers. */
	u64 leaf_bytecode;
	u64 leaf_offset;
	u64 leaf_function;
	/* Capacity for a word at any 6-bit offset. */
	u64 info[9];
	struct v8_function known[V8_KNOWN_FUNCTIONS];
	/* Start and length of the memory that the last read of frames got. */
	u64 window;
	u64 window_bytes;
	u8 frames[V8_WINDOW + V8_FRAME_BYTES];
};

/* Returns the isolate of the thread whose pthread_self() is @self, or 0. */
static __always_inline u64 v8_isolate(struct v8_layout *layout, u64 base,
				      u64 self)
{
	u64 isolate, block, index[2];
	u8 is_created;
	u32 key;

	switch (layout->isolate_place) {
	case V8_ISOLATE_OF_KEY:
		if (!read_user(&is_created, sizeof(is_created),
			       base + layout->key_created) ||
		    !is_created || !read_user(&key, sizeof(key), base))
			return 0;
		return pthread_value(self, key);
	case V8_ISOLATE_AT_OFFSET:
		if (!read_user(&isolate, sizeof(isolate), self + base))
			return 0;
		return isolate;
	case V8_ISOLATE_IN_MODULE:
		/* tcbhead_t: the second word leads to the dtv, an array of dtv_t. */
		if (!read_user(index, sizeof(index), base) ||
		    !read_user(&block, sizeof(block), self + sizeof(u64)) ||
		    !read_user(&block, sizeof(block),
			       block + index[0] * 2 * sizeof(u64)) ||
		    !read_user(&isolate, sizeof(isolate), block + index[1]))
			return 0;
		return isolate;
	}
	return 0;
}

/*
 * Reads the current frame unless an earlier read got it. Returns whether it is read.
 * Callers have larger addresses, so the read goes on to the end of the page.
 */
static __always_inline bool read_v8_frame(struct v8_walk *walk)
{
	u64 start = walk->fp + V8_FRAME_START;
	u64 size = 4096 - start % 4096;

	if (start >= walk->window &&
	    start - walk->window + V8_FRAME_BYTES <= walk->window_bytes)
		return true;
	if (size > V8_WINDOW)
		size = V8_WINDOW;
	if (size < V8_FRAME_BYTES)
		size = V8_FRAME_BYTES;
	walk->window = start;
	walk->window_bytes = size;
	barrier_var(size);
	if (size <= V8_WINDOW && read_user(walk->frames, size, start))
		return true;
	walk->window_bytes = 0;
	return false;
}

/* Returns the word in @slot of the current frame. */
static __always_inline u64 v8_slot(struct v8_walk *walk, s32 slot)
{
	u32 at = walk->fp + V8_FRAME_START - walk->window;

	asm volatile("%0 &= 1023" : "+r"(at));
	return *(u64 *)(walk->frames + at + (slot - V8_FRAME_START));
}

static __always_inline bool is_v8_object(u64 word)
{
	return (word & V8_OBJECT_MASK) == V8_OBJECT;
}

/* Returns the word at @offset of the SharedFunctionInfo in walk->info. */
static __always_inline u64 v8_info_word(struct v8_walk *walk, u32 offset)
{
	offset -= V8_INFO_START;
	asm volatile("%0 &= 63" : "+r"(offset));
	return *(u64 *)((u8 *)walk->info + offset);
}

/*
 * Returns the JSFunction @function, which is read unless an earlier frame got it.
 * Returns NULL if it cannot be read.
 */
static __always_inline struct v8_function *
read_v8_function(struct v8_walk *walk, struct v8_layout *layout, u64 function)
{
	u32 index = function >> V8_FUNCTION_SHIFT;
	struct v8_function *known;
	u64 info, hash;

	asm volatile("%0 &= 7" : "+r"(index));
	known = &walk->known[index];
	if (known->function == function)
		return known;
	if (!is_v8_object(function) ||
	    !read_user(&info, sizeof(info),
		       function - V8_OBJECT + layout->function_shared) ||
	    !is_v8_object(info))
		return NULL;
	info -= V8_OBJECT;
	if (!read_user(walk->info, V8_INFO_BYTES, info + V8_INFO_START))
		return NULL;
	hash = hash_word(0, v8_info_word(walk, layout->info_name));
	hash = hash_word(hash, v8_info_word(walk, layout->info_script));
	known->function = function;
	known->info = info;
	known->code = walk->info[0];
	known->checksum = hash >> 32;
	return known;
}

/*
 * Returns the position in the bytecode if the current frame is interpreted, else -1.
 * Frames of compiled code may have any values in the two slots.
 */
static __always_inline s32 v8_bytecode_offset(struct v8_walk *walk,
					      struct v8_layout *layout,
					      struct v8_function *known)
{
	u64 array = v8_slot(walk, V8_BYTECODE_ARRAY);
	u64 offset = v8_slot(walk, V8_BYTECODE_OFFSET);
	u64 code = known->code;
	u64 bytecode;

	if (!is_v8_object(array) || (u32)offset)
		return -1;
	/*
	 * If the function has code besides its bytecode, this leads to the bytecode.
	 * Otherwise it is the bytecode.
	 */
	if (array != code &&
	    (!is_v8_object(code) ||
	     !read_user(&bytecode, sizeof(bytecode),
			code - V8_OBJECT + layout->code_bytecode) ||
	     bytecode != array))
		return -1;
	known->code = array;
	offset >>= 32;
	/* The interpreter stores the offset only before a call. */
	if (walk->leaf_bytecode == array)
		offset = walk->leaf_offset;
	offset -= layout->first_bytecode;
	return offset < V8_MAX_BYTECODE ? offset : -1;
}

/*
 * Notes the frame of @function, whose code goes on at @pc. @is_builtin: the function is
 * implemented in C++.
 */
static __always_inline enum chain_end
note_v8_frame(struct chain_walk *chain, struct v8_walk *walk,
	      struct v8_layout *layout, struct mixed_stack *stack, u64 function,
	      u64 pc, bool is_builtin)
{
	struct v8_function *known = read_v8_function(walk, layout, function);
	enum chain_end end;
	s32 instruction;
	u64 upper;

	if (!known)
		return CHAIN_READ_FAILED;
	if (is_builtin)
		instruction = 0;
	else
		instruction = v8_bytecode_offset(walk, layout, known);
	if (instruction < 0) {
		if (!pc)
			pc = V8_UNKNOWN_PC;
		upper = pc >> 31;
		if (upper != walk->upper) {
			walk->upper = upper;
			end = note_mark(chain, stack, upper, CHAIN_COMPILED, 0);
			if (end != CHAIN_GOES_ON)
				return end;
			if (stack->count >= CHAIN_DEPTH)
				return CHAIN_TOO_DEEP;
		}
		instruction = (u32)pc | 1U << 31;
	}
	note_frame(chain, stack, known->info, instruction, known->checksum);
	return CHAIN_GOES_ON;
}

/* Finds the innermost frame of the thread whose pthread_self() is @self. */
static __always_inline enum chain_end
v8_start(struct chain_walk *chain, struct language_layout *of_version, u64 self)
{
	struct v8_walk *walk = CHAIN_STATE(chain, struct v8_walk);
	struct v8_layout *layout = LAYOUT_OF(of_version, struct v8_layout);
	u64 isolate = v8_isolate(layout, chain->base, self);
	/* Frame pointer of the code that called C++, and its return address if known. */
	u64 call[2];

	if (!isolate ||
	    !read_user(call, sizeof(u64), isolate + layout->c_entry_fp))
		return CHAIN_NO_THREAD;
	call[1] = 0;
	/* No address has these bits. */
	walk->upper = -1ULL;
	walk->window = 0;
	walk->window_bytes = 0;
	walk->leaf_bytecode = 0;
	walk->leaf_function = 0;
	for (u32 i = 0; i < V8_KNOWN_FUNCTIONS; i++)
		walk->known[i].function = 0;
	if (!call[0] &&
	    !read_user(call, sizeof(call), isolate + layout->fast_c_call_fp))
		return CHAIN_NO_THREAD;
	walk->fp = call[0];
	walk->pc = call[1];
	/*
	 * A thread that compiles or collects garbage for another thread has the isolate
	 * of that thread. Each frame of this thread's own stack is above the stack
	 * pointer. The stack of a thread of pthread ends below its thread pointer.
	 */
	if (walk->fp && (walk->fp < chain->leaf.sp ||
			 (self > chain->leaf.sp && walk->fp >= self)))
		return CHAIN_NO_THREAD;
	if (!walk->fp) {
		/* The thread runs code of V8, or nothing of it. */
		u64 context;

		walk->fp = chain->leaf.bp;
		if (!chain->leaf.is_exact || walk->fp < chain->leaf.sp ||
		    walk->fp % sizeof(u64) || !read_v8_frame(walk))
			return CHAIN_NO_THREAD;
		context = v8_slot(walk, V8_CONTEXT);
		if (context & 1 && !is_v8_object(context))
			return CHAIN_NO_THREAD;
		walk->pc = chain->leaf.ip;
		walk->leaf_bytecode = chain->leaf.v8_bytecode;
		walk->leaf_offset = chain->leaf.v8_offset;
		walk->leaf_function = chain->leaf.v8_function;
		chain->is_at_leaf = true;
	}
	walk->first_fp = walk->fp;
	return CHAIN_GOES_ON;
}

/* Notes the current frame of @chain, and steps to its caller. */
static __always_inline enum chain_end
v8_step(struct chain_walk *chain, struct language_layout *of_version,
	struct mixed_stack *stack)
{
	struct v8_walk *walk = CHAIN_STATE(chain, struct v8_walk);
	struct v8_layout *layout = LAYOUT_OF(of_version, struct v8_layout);
	u64 context, function;
	enum chain_end end = CHAIN_GOES_ON;

	if (!walk->fp)
		return CHAIN_WHOLE;
	if (stack->count >= CHAIN_DEPTH)
		return CHAIN_TOO_DEEP;
	if (walk->fp % sizeof(u64))
		return CHAIN_BROKEN;
	if (!read_v8_frame(walk))
		return CHAIN_READ_FAILED;
	context = v8_slot(walk, V8_CONTEXT);
	walk->caller = v8_slot(walk, V8_CALLER_FP);
	walk->current_pc = walk->pc;
	walk->pc = v8_slot(walk, V8_RETURN_ADDRESS);
	if (walk->leaf_function) {
		/* A function that begins has no frame. Its JSFunction is in a register. */
		struct v8_function *begins =
			read_v8_function(walk, layout, walk->leaf_function);

		walk->leaf_function = 0;
		if (begins)
			note_link(stack, begins->info, CHAIN_BEGINS,
				  begins->checksum);
		if (stack->count >= CHAIN_DEPTH)
			return CHAIN_TOO_DEEP;
	}
	if (context & 1) {
		if (!is_v8_object(context))
			return CHAIN_BROKEN;
		end = note_v8_frame(chain, walk, layout, stack,
				    v8_slot(walk, V8_FUNCTION),
				    walk->current_pc, false);
	} else if (context >> 1 == V8_ENTRY ||
		   context >> 1 == V8_CONSTRUCT_ENTRY) {
		end = note_mark(chain, stack, walk->fp, CHAIN_SPAN,
				(walk->fp - walk->first_fp) / sizeof(u64));
		walk->caller = v8_slot(walk, V8_OUTER_EXIT);
		walk->first_fp = walk->caller;
		walk->pc = 0;
		if (!walk->caller)
			walk->fp = 0;
	} else if (context >> 1 == layout->builtin_exit) {
		/* A function that C++ implements. */
		if (!read_user(&function, sizeof(function),
			       walk->fp + V8_EXIT_TARGET))
			return CHAIN_READ_FAILED;
		end = note_v8_frame(chain, walk, layout, stack, function, 0,
				    true);
	} else if (context >> 1 == layout->wasm) {
		note_frame(chain, stack, 0, 0, 0);
	}
	walk->leaf_bytecode = 0;
	if (!walk->fp)
		return end;
	if (walk->caller <= walk->fp)
		return CHAIN_BROKEN;
	walk->fp = walk->caller;
	return end;
}

/* The memory of a function is in too many places to be sent. User space reads it. */
static __always_inline u64 v8_read_function(
	struct interpreted_function *function,
	struct language_layout *of_version, struct chain_link *link, u64 base)
{
	return 0;
}

/* The threads of a process share no lock. */
static __always_inline u32 v8_lock_holder(struct language_layout *of_version,
					  u64 base, u64 futex)
{
	return 0;
}

#endif
