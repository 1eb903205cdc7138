/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Reads the frames of CPython. Each thread's state leads to its innermost frame, and
 * each frame to its caller's frame. At each new entry the interpreter leaves a record
 * on the C stack, the anchor. The anchor lies in the native frame that runs the Python
 * frames before it. User space names the frames, and shared/languages/src/interleave.rs
 * puts them between the native frames.
 *
 * shared/languages/src/python/walk.rs has the same algorithm for user space. Change
 * both together. The offsets of every version are in layout.rs beside it.
 */
#ifndef SYSTEMSCOPE_PYTHON_H
#define SYSTEMSCOPE_PYTHON_H

#include "languages/language.h"
#include "languages/pthread_values.h"

/* Layout of a version of CPython: offsets in bytes from the beginning of each struct. */
struct python_layout {
	/* enum python_anchoring */
	u16 anchoring;
	/* In _PyRuntime: the key to each thread's state, a Py_tss_t. */
	u16 runtime_key;
	/* In PyThreadState; thread_cframe is 0 in versions without it. */
	u16 thread_frame;
	u16 thread_cframe;
	u16 thread_id;
	/* In the record on the C stack, in versions whose record is not a frame. */
	u16 cframe_frame;
	u16 cframe_previous;
	/* In a frame. Programs read the first frame_bytes of it. */
	u16 frame_bytes;
	u16 frame_previous;
	u16 frame_code;
	u16 frame_instruction;
	u16 frame_owner;
	u16 frame_is_entry;
	/* Unit of f_lasti in bytes; 0 if the frame has an address instead. */
	u16 instruction_unit;
	/* Bits in a reference to a code object that are not part of the address. */
	u16 code_tag;
	/*
	 * In a code object. code_filename, code_name and code_first_line count from
	 * code_start, and lie within the code_bytes from there on.
	 */
	u16 code_instructions;
	u16 code_start;
	u16 code_bytes;
	u16 code_filename;
	u16 code_name;
	u16 code_first_line;
	/* Offset of the table of lines. */
	u16 code_lines;
	/* Offsets of the characters in a string: ASCII, and other. */
	u16 ascii_data;
	u16 other_data;
};

/* Place of the anchors. */
enum python_anchoring {
	/* The version has no anchors. */
	PYTHON_NO_ANCHORS,
	/* A separate record for each frame. */
	PYTHON_ANCHOR_AT_EVERY_FRAME,
	/* A separate record for each frame with the mark of an entry. */
	PYTHON_ANCHOR_AT_ENTRIES,
	/* Frames that stand for no function. */
	PYTHON_ANCHOR_IS_FRAME,
};

USER_SPACE_KNOWS(enum, python_anchoring);

USER_SPACE_KNOWS(struct, python_layout);

/* Maximum position in a code object, larger than any code. */
#define MAX_PYTHON_INSTRUCTIONS (1LL << 28)

/* Capacity for a frame, and for the bytes that programs read of a code object. */
#define PYTHON_BYTES 128

/*
 * Bytes of a read of frames. From 3.11 on a thread's frames are contiguous, each caller
 * before the function that it calls, so one read gets several frames.
 */
#define PYTHON_WINDOW 1024
#define PAGE_BYTES 4096ULL

/* Read of a chain in progress. */
struct python_walk {
	u64 frame;
	u64 cframe;
	/* Bytes of the last code object, and space for a word at any 7-bit offset. */
	u8 code[PYTHON_BYTES + sizeof(u64)];
	/* Start and length of the memory that the last read of frames got. */
	u64 window;
	u64 window_bytes;
	u8 frames[PYTHON_WINDOW + PYTHON_BYTES + sizeof(u64)];
};

/*
 * Returns the word at @offset in the bytes read of a code object. The mask is for older
 * verifiers, which forget comparisons.
 */
static __always_inline u64 code_word(struct python_walk *walk, u32 offset)
{
	asm volatile("%0 &= 127" : "+r"(offset));
	return *(u64 *)(walk->code + offset);
}

static __always_inline bool read_code(struct python_walk *walk, u32 bytes,
				      u64 address)
{
	asm volatile("%0 &= 127" : "+r"(bytes));
	return read_user(walk->code, bytes, address);
}

/* Returns the word at @offset in the current frame. */
static __always_inline u64 frame_word(struct python_walk *walk, u32 offset)
{
	u32 at = walk->frame - walk->window;

	asm volatile("%0 &= 1023" : "+r"(at));
	asm volatile("%0 &= 127" : "+r"(offset));
	return *(u64 *)(walk->frames + at + offset);
}

/* Reads the current frame unless an earlier read got it. Returns whether it is read. */
static __always_inline bool read_frame(struct python_walk *walk,
				       struct python_layout *layout)
{
	u32 bytes = layout->frame_bytes;
	u64 size;

	if (walk->frame - walk->window + bytes <= walk->window_bytes &&
	    walk->frame >= walk->window)
		return true;
	if (!layout->instruction_unit &&
	    bytes <= PAGE_BYTES - walk->frame % PAGE_BYTES) {
		/*
		 * The read stays within one page, because the neighbouring pages may be
		 * missing.
		 */
		walk->window = walk->frame - (PYTHON_WINDOW - PYTHON_BYTES);
		if ((walk->window ^ walk->frame) & -PAGE_BYTES)
			walk->window = walk->frame & -PAGE_BYTES;
		size = PAGE_BYTES - walk->window % PAGE_BYTES;
		if (size > PYTHON_WINDOW)
			size = PYTHON_WINDOW;
		walk->window_bytes = size;
		if (read_user(walk->frames, size, walk->window))
			return true;
	}
	walk->window = walk->frame;
	walk->window_bytes = bytes;
	asm volatile("%0 &= 127" : "+r"(bytes));
	if (read_user(walk->frames, bytes, walk->frame))
		return true;
	walk->window_bytes = 0;
	return false;
}

/* Returns the state of the thread whose pthread_self() is @self, or 0 if it has none. */
static __always_inline u64 python_thread(struct python_layout *layout,
					 u64 runtime, u64 self)
{
	u64 thread, id;
	/* Py_tss_t: whether it is initialized, and the key. */
	u32 key[2];

	if (!read_user(key, sizeof(key), runtime + layout->runtime_key) ||
	    !key[0])
		return 0;
	thread = pthread_value(self, key[1]);
	if (!thread || !read_user(&id, sizeof(id), thread + layout->thread_id))
		return 0;
	return id == self ? thread : 0;
}

/*
 * Finds the innermost frame of the thread whose PyThreadState is at @thread. Returns
 * false if a read fails.
 */
static __always_inline bool find_python_frame(struct python_walk *walk,
					      struct python_layout *layout,
					      u64 thread)
{
	u64 from = thread + layout->thread_frame;

	walk->cframe = 0;
	if (layout->thread_cframe) {
		if (!read_user(&walk->cframe, sizeof(walk->cframe),
			       thread + layout->thread_cframe))
			return false;
		if (!layout->thread_frame)
			from = walk->cframe + layout->cframe_frame;
	}
	return read_user(&walk->frame, sizeof(walk->frame), from);
}

/* Notes the current frame of @walk, whose bytes have been read. */
static __always_inline enum chain_end
note_python_frame(struct chain_walk *chain, struct python_walk *walk,
		  struct python_layout *layout, struct mixed_stack *stack)
{
	u64 code = frame_word(walk, layout->frame_code) &
		   ~(u64)layout->code_tag;
	u64 word = frame_word(walk, layout->frame_instruction);
	s64 instruction;
	u64 checksum;

	if (layout->instruction_unit)
		instruction = (s64)(s32)word * layout->instruction_unit;
	else
		instruction = word - code - layout->code_instructions;
	if (!code || code % sizeof(u64) ||
	    instruction <= -MAX_PYTHON_INSTRUCTIONS ||
	    instruction >= MAX_PYTHON_INSTRUCTIONS)
		return CHAIN_BROKEN;
	if (!read_code(walk, layout->code_bytes, code + layout->code_start))
		return CHAIN_READ_FAILED;
	checksum = hash_word(0, code_word(walk, layout->code_filename));
	checksum = hash_word(checksum, code_word(walk, layout->code_name));
	checksum = hash_word(checksum,
			     (u32)code_word(walk, layout->code_first_line));
	note_frame(chain, stack, code, instruction, checksum >> 32);
	return CHAIN_GOES_ON;
}

/* Finds the innermost frame of the thread whose pthread_self() is @self. */
static __always_inline enum chain_end
python_start(struct chain_walk *chain, struct language_layout *of_version,
	     u64 self)
{
	struct python_walk *walk = CHAIN_STATE(chain, struct python_walk);
	struct python_layout *layout =
		LAYOUT_OF(of_version, struct python_layout);
	u64 thread;

	walk->window_bytes = 0;
	thread = python_thread(layout, chain->base, self);
	if (!thread || !find_python_frame(walk, layout, thread))
		return CHAIN_NO_THREAD;
	return CHAIN_GOES_ON;
}

/* Notes the current frame of @chain, and steps to its caller. */
static __always_inline enum chain_end
python_step(struct chain_walk *chain, struct language_layout *of_version,
	    struct mixed_stack *stack)
{
	struct python_walk *walk = CHAIN_STATE(chain, struct python_walk);
	struct python_layout *layout =
		LAYOUT_OF(of_version, struct python_layout);
	u16 anchoring = layout->anchoring;
	bool is_anchor = false;
	enum chain_end end;
	u64 previous;
	u8 owner;

	if (!walk->frame)
		return CHAIN_WHOLE;
	if (stack->count >= CHAIN_DEPTH)
		return CHAIN_TOO_DEEP;
	if (walk->frame % sizeof(u64))
		return CHAIN_BROKEN;
	if (!read_frame(walk, layout))
		return CHAIN_READ_FAILED;
	previous = frame_word(walk, layout->frame_previous);

	if (anchoring == PYTHON_ANCHOR_IS_FRAME) {
		/* FRAME_OWNED_BY_...: a thread, a generator, a frame object, C. */
		owner = frame_word(walk, layout->frame_owner);
		if (owner > 4)
			return CHAIN_BROKEN;
		if (owner >= 3) {
			end = note_anchor(chain, stack, walk->frame);
			walk->frame = previous;
			return end;
		}
	} else if (anchoring == PYTHON_ANCHOR_AT_ENTRIES) {
		is_anchor = (u8)frame_word(walk, layout->frame_is_entry);
	} else if (anchoring == PYTHON_ANCHOR_AT_EVERY_FRAME) {
		is_anchor = true;
	}
	end = note_python_frame(chain, walk, layout, stack);
	if (end != CHAIN_GOES_ON)
		return end;
	if (is_anchor) {
		end = note_anchor(chain, stack, walk->cframe);
		if (end != CHAIN_GOES_ON)
			return end;
		if (!read_user(&walk->cframe, sizeof(walk->cframe),
			       walk->cframe + layout->cframe_previous))
			return CHAIN_READ_FAILED;
	}
	walk->frame = previous;
	return CHAIN_GOES_ON;
}

/*
 * Maximum sizes of the pieces of a code object, and the start of each in the copy: the
 * object itself, its name, the name of its file, and its table of lines.
 */
#define PYTHON_CODE_BYTES 216
#define PYTHON_TEXT_BYTES 384
#define PYTHON_LINES_BYTES 16384
#define PYTHON_NAME_START PYTHON_CODE_BYTES
#define PYTHON_FILE_START (PYTHON_NAME_START + PYTHON_TEXT_BYTES)
#define PYTHON_LINES_START (PYTHON_FILE_START + PYTHON_TEXT_BYTES)

_Static_assert(PYTHON_LINES_START + PYTHON_LINES_BYTES <= FUNCTION_BYTES,
	       "a code object fits");

/*
 * Offsets of the length in a PyVarObject, of the state in a PyASCIIObject, and of the
 * bytes in a PyBytesObject.
 */
#define PYTHON_LENGTH 16
#define PYTHON_TEXT_STATE 32
#define PYTHON_BYTES_DATA 32

/* Returns the size of the string at @address in bytes; 0 if unknown. */
static __always_inline u64 python_text_bytes(struct python_layout *layout,
					     u64 address)
{
	u64 length, width;
	u32 state;

	if (!read_user(&length, sizeof(length), address + PYTHON_LENGTH) ||
	    !read_user(&state, sizeof(state), address + PYTHON_TEXT_STATE) ||
	    length > PYTHON_TEXT_BYTES)
		return 0;
	/*
	 * The state has the width of a character, and whether all characters are ASCII.
	 */
	width = state >> 2 & 7;
	return length * width +
	       (state >> 6 & 1 ? layout->ascii_data : layout->other_data);
}

/* Fills @function with the code object of @link. Returns the number of its bytes. */
static __always_inline u64 python_read_function(
	struct interpreted_function *function,
	struct language_layout *of_version, struct chain_link *link, u64 base)
{
	struct python_layout *layout =
		LAYOUT_OF(of_version, struct python_layout);
	struct function_piece *code = &function->pieces[0];
	struct function_piece *name = &function->pieces[1];
	struct function_piece *file = &function->pieces[2];
	struct function_piece *lines = &function->pieces[3];
	u64 length;

	code->address = link->code;
	code->start = 0;
	code->length = PYTHON_CODE_BYTES;
	if (!read_user(function->bytes, PYTHON_CODE_BYTES, code->address) ||
	    !read_user(&name->address, sizeof(u64),
		       code->address + layout->code_start +
			       layout->code_name) ||
	    !read_user(&file->address, sizeof(u64),
		       code->address + layout->code_start +
			       layout->code_filename) ||
	    !read_user(&lines->address, sizeof(u64),
		       code->address + layout->code_lines) ||
	    !read_user(&length, sizeof(length), lines->address + PYTHON_LENGTH))
		return 0;
	read_piece(function, name, PYTHON_NAME_START, PYTHON_TEXT_BYTES,
		   python_text_bytes(layout, name->address));
	read_piece(function, file, PYTHON_FILE_START, PYTHON_TEXT_BYTES,
		   python_text_bytes(layout, file->address));
	if (length > PYTHON_LINES_BYTES)
		length = PYTHON_LINES_BYTES;
	read_piece(function, lines, PYTHON_LINES_START, PYTHON_LINES_BYTES,
		   length + PYTHON_BYTES_DATA);
	return PYTHON_LINES_START + (u64)lines->length;
}

/*
 * Distance in bytes from the futex on which threads wait back to the pointer to the
 * last holder. The lock is the GIL, which the threads of an interpreter share: struct
 * _gil_runtime_state of Include/internal/pycore_gil.h, in 3.8 to 3.14. A thread that
 * waits for the lock waits on its condition. The holder is three words before the
 * condition. The futex is at offset 40 of the condition, or 32 since glibc 2.41:
 * sysdeps/nptl/bits/thread-shared-types.h. The holder is therefore 64 or 56 bytes
 * before the futex.
 */
#define PYTHON_HOLDER_BEFORE_WORD 64
#define PYTHON_HOLDERS 2

/* struct pthread of glibc's nptl/descr.h: its own address, and the thread's ID. */
#define PTHREAD_SELF 0x10
#define PTHREAD_TID 0x2d0

/* Returns the ID of the thread whose PyThreadState is at @state; 0 if there is none. */
static __always_inline u32 python_thread_id(struct python_layout *layout,
					    u64 state)
{
	u64 thread, self;
	u32 tid;

	if (!state || state % sizeof(u64) ||
	    !read_user(&thread, sizeof(thread), state + layout->thread_id) ||
	    !read_user(&self, sizeof(self), thread + PTHREAD_SELF) ||
	    self != thread ||
	    !read_user(&tid, sizeof(tid), thread + PTHREAD_TID))
		return 0;
	return tid;
}

/*
 * Returns the ID of the thread that holds the lock to whose condition @futex belongs; 0
 * if it belongs to no such lock.
 */
static __always_inline u32
python_lock_holder(struct language_layout *of_version, u64 base, u64 futex)
{
	struct python_layout *layout =
		LAYOUT_OF(of_version, struct python_layout);
	u64 states[PYTHON_HOLDERS];
	u32 holder;

	if (!read_user(states, sizeof(states),
		       (futex & -sizeof(u64)) - PYTHON_HOLDER_BEFORE_WORD))
		return 0;
	holder = python_thread_id(layout, states[0]);
	if (!holder)
		holder = python_thread_id(layout, states[1]);
	/* No condition shows by itself that it is the lock's. */
	return holder & ~LOCK_LANGUAGE;
}

#endif
