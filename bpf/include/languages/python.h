/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The frames of CPython. Each thread's state leads to its innermost frame, and
 * that to its callers; where the interpreter was entered anew, it leaves a record
 * on the C stack, the anchor: it lies in the native frame that runs the Python
 * frames before it. What is read here is put between the native frames by
 * shared/languages/src/interleave.rs, and named in user space.
 *
 * shared/languages/src/python/walk.rs is the same walk in user space, and must
 * stay so; layout.rs beside it has the offsets of every version.
 */
#ifndef SYSTEMSCOPE_PYTHON_H
#define SYSTEMSCOPE_PYTHON_H

#include "events.h"
#include "stacks/user_memory.h"

/* Where a version of CPython keeps what, in bytes from the beginning of each. */
struct python_layout {
	/* enum python_anchoring */
	u16 anchoring;
	/* In _PyRuntime: the key to each thread's state, a Py_tss_t. */
	u16 runtime_key;
	/* In PyThreadState; thread_cframe is 0 where there is none. */
	u16 thread_frame;
	u16 thread_cframe;
	u16 thread_id;
	/* In the record on the C stack, where that is none of the frames. */
	u16 cframe_frame;
	u16 cframe_previous;
	/* In a frame, of which no more than frame_bytes are to be read. */
	u16 frame_bytes;
	u16 frame_previous;
	u16 frame_code;
	u16 frame_instruction;
	u16 frame_owner;
	u16 frame_is_entry;
	/* What f_lasti counts, in bytes; 0 where there is an address instead. */
	u16 instruction_unit;
	/* Bits of a reference to a code object that are not the address. */
	u16 code_tag;
	/* In a code object; the next three are in the code_bytes from code_start on. */
	u16 code_instructions;
	u16 code_start;
	u16 code_bytes;
	u16 code_filename;
	u16 code_name;
	u16 code_first_line;
	/* What else is read of one: a table of lines. */
	u16 code_lines;
	/* In a string, its characters: ASCII ones, and others. */
	u16 ascii_data;
	u16 other_data;
};

/* Where the anchors are. */
enum python_anchoring {
	/* There are none. */
	PYTHON_NO_ANCHORS,
	/* A record of its own for each frame. */
	PYTHON_ANCHOR_AT_EVERY_FRAME,
	/* A record of its own for each frame that says that it is an entry. */
	PYTHON_ANCHOR_AT_ENTRIES,
	/* Frames that stand for no function. */
	PYTHON_ANCHOR_IS_FRAME,
};

USER_SPACE_KNOWS(enum, python_anchoring);

#define PYTHON_LAYOUTS 16

/* By minor version; those that are not known are empty. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PYTHON_LAYOUTS);
	__type(key, u32);
	__type(value, struct python_layout);
} python_layouts SEC(".maps");

USER_SPACE_KNOWS(struct, python_layout);

/* How the walk along a thread's Python frames ended. */
enum python_end {
	/* It goes on. */
	PYTHON_GOES_ON,
	/* The thread is none of the interpreter's. */
	PYTHON_NO_THREAD,
	/* At the thread's first function. */
	PYTHON_WHOLE,
	/* A frame could not be read. */
	PYTHON_READ_FAILED,
	/* There are more frames than are kept. */
	PYTHON_TOO_DEEP,
	/* Something is there that no interpreter leaves. */
	PYTHON_BROKEN,
};

USER_SPACE_KNOWS(enum, python_end);

/* Frames and anchors that are kept at most. */
#define PYTHON_DEPTH 1024

/* A frame, or an anchor: the address of that. */
struct python_link {
	/* Of the code object. */
	u64 code;
	/* In bytes from the first one; PYTHON_ANCHOR for an anchor. */
	s32 instruction;
	/* Tells a code object from another that has its address later. */
	u32 checksum;
};

#define PYTHON_ANCHOR (-0x80000000LL)
/* No code is as long. */
#define MOST_PYTHON_INSTRUCTIONS (1LL << 28)

/* The frames of an interpreter and where native ones are, leaf first. */
struct mixed_stack {
	u32 kind;
	u32 count;
	u64 hash;
	/* ID of the native stack; that of a dump is the same as this one's. */
	u64 native;
	u64 instance;
	u32 pid;
	/* enum python_end */
	u32 end;
	/* The stack pointer at the leaf. */
	u64 stack_pointer;
	/* Minor version. */
	u32 layout;
	/* How many native frames have a CFA here. */
	u32 depth;
	struct python_link links[PYTHON_DEPTH];
	/* They are sent right behind the last link. */
	u64 cfas[STACK_DEPTH];
};

#define MIXED_STACK_HEADER __builtin_offsetof(struct mixed_stack, links)

/* Enough for a frame, and for what is read of a code object. */
#define PYTHON_BYTES 128

/*
 * From 3.11 on a thread's frames lie one behind the other, callers before those whom
 * they call: some are read at once.
 */
#define PYTHON_WINDOW 1024
#define PAGE_BYTES 4096ULL

/* A walk in progress. */
struct python_walk {
	/* Where _PyRuntime is; 0 if the process has no interpreter. */
	u64 runtime;
	/* Minor version. */
	u32 layout;
	u64 frame;
	u64 cframe;
	u64 hash;
	/* What was read last of a code object, and room for a word at any index of 7 bits. */
	u8 code[PYTHON_BYTES + sizeof(u64)];
	/* What was read last of the memory where frames are: from where, how much. */
	u64 window;
	u64 window_bytes;
	u8 frames[PYTHON_WINDOW + PYTHON_BYTES + sizeof(u64)];
};

/* struct pthread of glibc's nptl/descr.h: values of the first keys, and of others. */
#define PTHREAD_FIRST_VALUES 0x310
#define PTHREAD_VALUES 0x510
#define PTHREAD_VALUES_AT_ONCE 32
#define PTHREAD_MOST_KEYS 1024
/* The value is the second word of struct pthread_key_data. */
#define PTHREAD_VALUE_BYTES 16
#define PTHREAD_VALUE 8

static __always_inline struct python_layout *find_python_layout(u32 version)
{
	return bpf_map_lookup_elem(&python_layouts, &version);
}

/* What was read of a code object, at @offset. Older verifiers lose sight of comparisons. */
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

/* What was read of the frame at which @walk is, at @offset. */
static __always_inline u64 frame_word(struct python_walk *walk, u32 offset)
{
	u32 at = walk->frame - walk->window;

	asm volatile("%0 &= 1023" : "+r"(at));
	asm volatile("%0 &= 127" : "+r"(offset));
	return *(u64 *)(walk->frames + at + offset);
}

/* Has the frame at which @walk is read, if it is not yet. */
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
		/* Of one page, as there may be nothing around it. */
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

/* The state of the thread whose pthread_self() is @self, or 0 if it has none. */
static __always_inline u64 python_thread(struct python_walk *walk,
					 struct python_layout *layout, u64 self)
{
	u64 thread, id, values = self + PTHREAD_FIRST_VALUES;
	/* Py_tss_t: whether it is there, and which one it is. */
	u32 key[2];

	if (!read_user(key, sizeof(key), walk->runtime + layout->runtime_key) ||
	    !key[0] || key[1] >= PTHREAD_MOST_KEYS)
		return 0;
	if (key[1] >= PTHREAD_VALUES_AT_ONCE &&
	    (!read_user(&values, sizeof(values),
			self + PTHREAD_VALUES +
				key[1] / PTHREAD_VALUES_AT_ONCE * sizeof(u64)) ||
	     !values))
		return 0;
	values += key[1] % PTHREAD_VALUES_AT_ONCE * PTHREAD_VALUE_BYTES;
	if (!read_user(&thread, sizeof(thread), values + PTHREAD_VALUE) ||
	    !thread || !read_user(&id, sizeof(id), thread + layout->thread_id))
		return 0;
	return id == self ? thread : 0;
}

/* Goes to the innermost frame of @thread. */
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

/* Notes the frame at which @walk is; its bytes have been read. */
static __always_inline enum python_end
note_python_frame(struct python_walk *walk, struct python_layout *layout,
		  struct mixed_stack *stack)
{
	u64 code = frame_word(walk, layout->frame_code) &
		   ~(u64)layout->code_tag;
	u64 word = frame_word(walk, layout->frame_instruction);
	struct python_link *link;
	s64 instruction;
	u64 checksum;
	u32 index;

	if (layout->instruction_unit)
		instruction = (s64)(s32)word * layout->instruction_unit;
	else
		instruction = word - code - layout->code_instructions;
	if (!code || code % sizeof(u64) ||
	    instruction <= -MOST_PYTHON_INSTRUCTIONS ||
	    instruction >= MOST_PYTHON_INSTRUCTIONS)
		return PYTHON_BROKEN;
	if (!read_code(walk, layout->code_bytes, code + layout->code_start))
		return PYTHON_READ_FAILED;
	checksum = hash_word(0, code_word(walk, layout->code_filename));
	checksum = hash_word(checksum, code_word(walk, layout->code_name));
	checksum = hash_word(checksum,
			     (u32)code_word(walk, layout->code_first_line));

	index = stack->count;
	stack->count = index + 1;
	index &= PYTHON_DEPTH - 1;
	barrier_var(index);
	link = &stack->links[index & (PYTHON_DEPTH - 1)];
	link->code = code;
	link->instruction = instruction;
	link->checksum = checksum >> 32;
	walk->hash = hash_word(hash_word(walk->hash, code),
			       *(u64 *)&link->instruction);
	return PYTHON_GOES_ON;
}

static __always_inline enum python_end
note_python_anchor(struct python_walk *walk, struct mixed_stack *stack,
		   u64 address)
{
	struct python_link *link;
	u32 index = stack->count;

	if (index >= PYTHON_DEPTH)
		return PYTHON_TOO_DEEP;
	stack->count = index + 1;
	barrier_var(index);
	link = &stack->links[index & (PYTHON_DEPTH - 1)];
	link->code = address;
	link->instruction = PYTHON_ANCHOR;
	link->checksum = 0;
	walk->hash = hash_word(walk->hash, address);
	return PYTHON_GOES_ON;
}

/* Notes the frame that @walk is at, and goes on to its caller. */
static __always_inline enum python_end step_python(struct python_walk *walk,
						   struct python_layout *layout,
						   struct mixed_stack *stack)
{
	u16 anchoring = layout->anchoring;
	bool is_anchor = false;
	enum python_end end;
	u64 previous;
	u8 owner;

	if (!walk->frame)
		return PYTHON_WHOLE;
	if (stack->count >= PYTHON_DEPTH)
		return PYTHON_TOO_DEEP;
	if (walk->frame % sizeof(u64))
		return PYTHON_BROKEN;
	if (!read_frame(walk, layout))
		return PYTHON_READ_FAILED;
	previous = frame_word(walk, layout->frame_previous);

	if (anchoring == PYTHON_ANCHOR_IS_FRAME) {
		/* FRAME_OWNED_BY_...: a thread, a generator, a frame object, C. */
		owner = frame_word(walk, layout->frame_owner);
		if (owner > 4)
			return PYTHON_BROKEN;
		if (owner >= 3) {
			end = note_python_anchor(walk, stack, walk->frame);
			walk->frame = previous;
			return end;
		}
	} else if (anchoring == PYTHON_ANCHOR_AT_ENTRIES) {
		is_anchor = (u8)frame_word(walk, layout->frame_is_entry);
	} else if (anchoring == PYTHON_ANCHOR_AT_EVERY_FRAME) {
		is_anchor = true;
	}
	end = note_python_frame(walk, layout, stack);
	if (end != PYTHON_GOES_ON)
		return end;
	if (is_anchor) {
		end = note_python_anchor(walk, stack, walk->cframe);
		if (end != PYTHON_GOES_ON)
			return end;
		if (!read_user(&walk->cframe, sizeof(walk->cframe),
			       walk->cframe + layout->cframe_previous))
			return PYTHON_READ_FAILED;
	}
	walk->frame = previous;
	return PYTHON_GOES_ON;
}

/*
 * A function, as it is in memory: a program may end before user space looks. What
 * is longer is left to user space to read.
 */
#define PYTHON_CODE_BYTES 216
#define PYTHON_TEXT_BYTES 384
#define PYTHON_LINES_BYTES 16384

struct python_piece {
	u64 address;
	u64 bytes;
};

struct python_function {
	u32 kind;
	u32 pid;
	u64 instance;
	u64 code;
	u32 checksum;
	u32 layout;
	struct python_piece name;
	struct python_piece file;
	struct python_piece lines;
	u8 code_object[PYTHON_CODE_BYTES];
	u8 name_object[PYTHON_TEXT_BYTES];
	u8 file_object[PYTHON_TEXT_BYTES];
	u8 lines_object[PYTHON_LINES_BYTES];
};

#define PYTHON_FUNCTION_HEADER                                                 \
	__builtin_offsetof(struct python_function, lines_object)

USER_SPACE_KNOWS(struct, python_function);

/* PyVarObject: its length. PyASCIIObject: its state. PyBytesObject: its bytes. */
#define PYTHON_LENGTH 16
#define PYTHON_TEXT_STATE 32
#define PYTHON_BYTES_DATA 32

/* How many bytes the string at @address takes; 0 if that is not known. */
static __always_inline u64 python_text_bytes(struct python_layout *layout,
					     u64 address)
{
	u64 length, width;
	u32 state;

	if (!read_user(&length, sizeof(length), address + PYTHON_LENGTH) ||
	    !read_user(&state, sizeof(state), address + PYTHON_TEXT_STATE) ||
	    length > PYTHON_TEXT_BYTES)
		return 0;
	/* The width of a character, and whether all are ASCII. */
	width = state >> 2 & 7;
	return length * width +
	       (state >> 6 & 1 ? layout->ascii_data : layout->other_data);
}

/* Reads @piece, no more than @most bytes, which are @to. */
static __always_inline void read_python_piece(struct python_piece *piece,
					      u8 *to, u64 most, u64 bytes)
{
	piece->bytes = 0;
	barrier_var(bytes);
	if (bytes > most)
		return;
	if (read_user(to, bytes, piece->address))
		piece->bytes = bytes;
}

/* Has @function filled with the code object that @link is about. */
static __always_inline bool
read_python_function(struct python_function *function,
		     struct python_layout *layout, struct python_link *link)
{
	u64 code = link->code, length;

	if (!read_user(function->code_object, PYTHON_CODE_BYTES, code) ||
	    !read_user(&function->name.address, sizeof(u64),
		       code + layout->code_start + layout->code_name) ||
	    !read_user(&function->file.address, sizeof(u64),
		       code + layout->code_start + layout->code_filename) ||
	    !read_user(&function->lines.address, sizeof(u64),
		       code + layout->code_lines) ||
	    !read_user(&length, sizeof(length),
		       function->lines.address + PYTHON_LENGTH))
		return false;
	read_python_piece(&function->name, function->name_object,
			  PYTHON_TEXT_BYTES,
			  python_text_bytes(layout, function->name.address));
	read_python_piece(&function->file, function->file_object,
			  PYTHON_TEXT_BYTES,
			  python_text_bytes(layout, function->file.address));
	if (length > PYTHON_LINES_BYTES)
		length = PYTHON_LINES_BYTES;
	read_python_piece(&function->lines, function->lines_object,
			  PYTHON_LINES_BYTES, length + PYTHON_BYTES_DATA);
	function->code = code;
	function->checksum = link->checksum;
	return true;
}

#endif
