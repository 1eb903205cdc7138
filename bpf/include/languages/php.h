/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Reads the frames of PHP (builds that are not thread-safe). A variable leads to the
 * innermost frame of the process's first thread, which alone runs PHP, and each frame to
 * its caller's frame. A frame may begin an activation of execute_ex(), the function that
 * interprets PHP. User space pairs activations with the native frames of execute_ex().
 *
 * shared/languages/src/php/walk.rs has the same algorithm for user space. Change both
 * together. The offsets of every version are in layout.rs beside it.
 */
#ifndef SYSTEMSCOPE_PHP_H
#define SYSTEMSCOPE_PHP_H

#include "languages/language.h"
#include "languages/memory_window.h"

/* Layout of a version of PHP: offsets in bytes from the beginning of each struct. */
struct php_layout {
	/* In zend_executor_globals: the innermost frame. */
	u16 current;
	/* In zend_op_array. Programs read the first function_bytes of it. */
	u16 function_count;
	u16 function_opcodes;
	u16 function_file;
	u16 function_bytes;
	/* 1 if functions end with a request, so that others get their addresses. */
	u16 has_requests;
};

USER_SPACE_KNOWS(struct, php_layout);

/* struct _zend_execute_data of Zend/zend_compile.h. Programs read its beginning. */
#define PHP_FRAME_INSTRUCTION 0
#define PHP_FRAME_FUNCTION 24
#define PHP_FRAME_FLAGS 40
#define PHP_FRAME_CALLER 48
#define PHP_FRAME_BYTES 56

/* ZEND_CALL_TOP: the frame begins an activation of execute_ex(). */
#define PHP_BEGINS_ACTIVATION (1U << 17)

/* union _zend_function: the same fields in all versions and kinds of functions. */
#define PHP_FUNCTION_FLAGS 4
#define PHP_FUNCTION_NAME 8
#define PHP_FUNCTION_CLASS 16
/* Enough of an internal function, and less than its size. */
#define PHP_INTERNAL_BYTES 32
#define PHP_FUNCTION_BYTES 256

/* ZEND_INTERNAL_FUNCTION, ZEND_USER_FUNCTION and ZEND_EVAL_CODE. */
#define PHP_INTERNAL 1
#define PHP_USER 2
#define PHP_EVAL 4

/* ZEND_ACC_IMMUTABLE: the function is in opcache's shared memory, and stays there. */
#define PHP_IMMUTABLE (1U << 7)

/* struct _zend_op. */
#define PHP_INSTRUCTION_BYTES 32

/* struct _zend_string: hash and length of the characters, and the characters. */
#define PHP_TEXT_HASH 8
#define PHP_TEXT_LENGTH 16
#define PHP_TEXT_DATA 24

/* struct _zend_class_entry. */
#define PHP_CLASS_NAME 8

/* Read of a chain in progress. */
struct php_walk {
	u64 frame;
	/* Current instruction in a register, or 0. */
	u64 instruction;
	/* Last function, or 0, and what is known of it. */
	u64 function;
	u64 opcodes;
	u32 count;
	u32 checksum;
	u8 type;
	struct memory_window frames;
	/* Bytes of the last function, and space for a word at any 8-bit offset. */
	u8 bytes[PHP_FUNCTION_BYTES + sizeof(u64)];
};

/* Returns the word at @offset in the bytes read of a function. */
static __always_inline u64 php_function_word(struct php_walk *walk, u32 offset)
{
	asm volatile("%0 &= 255" : "+r"(offset));
	return *(u64 *)(walk->bytes + offset);
}

/* Adds the hash of a string, which depends on its characters alone, to @checksum. */
static __always_inline bool add_php_text(u64 *checksum, u64 text)
{
	u64 hash = 0;

	if (text && !read_user(&hash, sizeof(hash), text + PHP_TEXT_HASH))
		return false;
	*checksum = hash_word(*checksum, hash);
	return true;
}

/* Reads the function at @address. Returns CHAIN_GOES_ON, or the reason of a failure. */
static __always_inline enum chain_end
read_php_function(struct php_walk *walk, struct php_layout *layout, u64 address)
{
	u32 bytes = layout->function_bytes;
	u64 checksum, name, file;

	walk->function = 0;
	asm volatile("%0 &= 255" : "+r"(bytes));
	/* An internal function is smaller, and may end before unreadable memory. */
	if (!read_user(walk->bytes, bytes, address)) {
		if (!read_user(walk->bytes, PHP_INTERNAL_BYTES, address))
			return CHAIN_READ_FAILED;
		if (walk->bytes[0] != PHP_INTERNAL)
			return CHAIN_READ_FAILED;
	}
	walk->type = walk->bytes[0];
	name = php_function_word(walk, PHP_FUNCTION_NAME);
	checksum = hash_word(walk->type, name);
	checksum = hash_word(checksum,
			     php_function_word(walk, PHP_FUNCTION_CLASS));
	walk->opcodes = 0;
	walk->count = 0;
	if (walk->type != PHP_INTERNAL) {
		if (walk->type != PHP_USER && walk->type != PHP_EVAL)
			return CHAIN_BROKEN;
		walk->opcodes =
			php_function_word(walk, layout->function_opcodes);
		walk->count = php_function_word(walk, layout->function_count);
		file = php_function_word(walk, layout->function_file);
		checksum = hash_word(checksum, file);
		/* The first and the last line. */
		checksum = hash_word(
			checksum,
			php_function_word(walk,
					  layout->function_file + sizeof(u64)));
		checksum = hash_word(checksum, walk->opcodes);
		checksum = hash_word(checksum, walk->count);
		if (layout->has_requests &&
		    !((u32)php_function_word(walk, PHP_FUNCTION_FLAGS) &
		      PHP_IMMUTABLE) &&
		    (!add_php_text(&checksum, name) ||
		     !add_php_text(&checksum, file)))
			return CHAIN_READ_FAILED;
	}
	walk->checksum = checksum >> 32;
	walk->function = address;
	return CHAIN_GOES_ON;
}

/*
 * Returns the number of the instruction at @address in the last function; -1 if the
 * function has no instruction there.
 */
static __always_inline s32 php_instruction(struct php_walk *walk, u64 address)
{
	u64 offset = address - walk->opcodes;

	if (offset % PHP_INSTRUCTION_BYTES ||
	    offset / PHP_INSTRUCTION_BYTES >= walk->count)
		return -1;
	return offset / PHP_INSTRUCTION_BYTES;
}

/* Finds the innermost frame if the current thread is the first of its process. */
static __always_inline enum chain_end
php_start(struct chain_walk *chain, struct language_layout *of_version,
	  u64 self)
{
	struct php_walk *walk = CHAIN_STATE(chain, struct php_walk);
	struct php_layout *layout = LAYOUT_OF(of_version, struct php_layout);
	u64 ids = bpf_get_current_pid_tgid();

	walk->frames.length = 0;
	walk->function = 0;
	if ((u32)ids != ids >> 32 ||
	    !read_user(&walk->frame, sizeof(walk->frame),
		       chain->base + layout->current) ||
	    !walk->frame)
		return CHAIN_NO_THREAD;
	/* execute_ex() saves the instruction only before calls that need it. */
	walk->instruction = chain->leaf.php_frame == walk->frame ?
				    chain->leaf.php_instruction :
				    0;
	return CHAIN_GOES_ON;
}

/* Notes the current frame of @chain, and steps to its caller. */
static __always_inline enum chain_end
php_step(struct chain_walk *chain, struct language_layout *of_version,
	 struct mixed_stack *stack)
{
	struct php_walk *walk = CHAIN_STATE(chain, struct php_walk);
	struct php_layout *layout = LAYOUT_OF(of_version, struct php_layout);
	u64 frame = walk->frame, function;
	enum chain_end end;
	s32 instruction;

	if (!frame)
		return CHAIN_WHOLE;
	if (stack->count >= CHAIN_DEPTH)
		return CHAIN_TOO_DEEP;
	if (frame % sizeof(u64))
		return CHAIN_BROKEN;
	if (!read_window(&walk->frames, frame, PHP_FRAME_BYTES,
			 WINDOW_DOWNWARDS))
		return CHAIN_READ_FAILED;
	walk->frame = window_word(&walk->frames, frame, PHP_FRAME_CALLER);
	function = window_word(&walk->frames, frame, PHP_FRAME_FUNCTION);
	/* A frame without a function only leads to its caller, as in a generator. */
	if (!function)
		return CHAIN_GOES_ON;
	if (function % sizeof(u64))
		return CHAIN_BROKEN;
	if (function != walk->function) {
		end = read_php_function(walk, layout, function);
		if (end != CHAIN_GOES_ON)
			return end;
	}
	if (walk->type == PHP_INTERNAL) {
		/* The frame at the bottom of a fiber's stack has no name. */
		if (!php_function_word(walk, PHP_FUNCTION_NAME))
			return note_anchor(chain, stack, ANCHOR_OTHER_STACK);
		note_frame(chain, stack, function, 0, walk->checksum);
		return CHAIN_GOES_ON;
	}
	instruction = walk->instruction ?
			      php_instruction(walk, walk->instruction) :
			      -1;
	walk->instruction = 0;
	if (instruction < 0)
		instruction = php_instruction(
			walk, window_word(&walk->frames, frame,
					  PHP_FRAME_INSTRUCTION));
	note_frame(chain, stack, function, instruction, walk->checksum);
	if ((u32)window_word(&walk->frames, frame, PHP_FRAME_FLAGS) &
	    PHP_BEGINS_ACTIVATION)
		return note_anchor(chain, stack, ANCHOR_ACTIVATION);
	return CHAIN_GOES_ON;
}

/*
 * Maximum sizes of the pieces of a function, and the start of each in the copy: the
 * function, its name, its class, the class's name, its file, and its instructions.
 */
#define PHP_TEXT_BYTES 384
#define PHP_CLASS_BYTES 16
#define PHP_INSTRUCTIONS_BYTES 14336
#define PHP_NAME_START PHP_FUNCTION_BYTES
#define PHP_CLASS_START (PHP_NAME_START + PHP_TEXT_BYTES)
#define PHP_CLASS_NAME_START (PHP_CLASS_START + PHP_CLASS_BYTES)
#define PHP_FILE_START (PHP_CLASS_NAME_START + PHP_TEXT_BYTES)
#define PHP_INSTRUCTIONS_START (PHP_FILE_START + PHP_TEXT_BYTES)

_Static_assert(PHP_INSTRUCTIONS_START + PHP_INSTRUCTIONS_BYTES <=
		       FUNCTION_BYTES,
	       "a function fits");

/* Copies the string at @piece->address to @start. */
static __always_inline void read_php_text(struct interpreted_function *function,
					  struct function_piece *piece,
					  u32 start)
{
	u64 length;

	piece->start = start;
	piece->length = 0;
	if (!piece->address ||
	    !read_user(&length, sizeof(length),
		       piece->address + PHP_TEXT_LENGTH) ||
	    length > PHP_TEXT_BYTES - PHP_TEXT_DATA)
		return;
	read_piece(function, piece, start, PHP_TEXT_BYTES,
		   length + PHP_TEXT_DATA);
}

/* Fills @function with the function of @link. Returns the number of its bytes. */
static __always_inline u64 php_read_function(
	struct interpreted_function *function,
	struct language_layout *of_version, struct chain_link *link, u64 base)
{
	struct php_layout *layout = LAYOUT_OF(of_version, struct php_layout);
	struct function_piece *whole = &function->pieces[0];
	struct function_piece *name = &function->pieces[1];
	struct function_piece *class = &function->pieces[2];
	struct function_piece *class_name = &function->pieces[3];
	struct function_piece *file = &function->pieces[4];
	struct function_piece *code = &function->pieces[5];
	u32 count, bytes = layout->function_bytes;
	u64 size;

	whole->address = link->code;
	whole->start = 0;
	asm volatile("%0 &= 255" : "+r"(bytes));
	whole->length = bytes;
	if (!read_user(function->bytes, bytes, link->code)) {
		whole->length = PHP_INTERNAL_BYTES;
		if (!read_user(function->bytes, PHP_INTERNAL_BYTES, link->code))
			return 0;
	}
	name->address = *(u64 *)(function->bytes + PHP_FUNCTION_NAME);
	read_php_text(function, name, PHP_NAME_START);
	class->address = *(u64 *)(function->bytes + PHP_FUNCTION_CLASS);
	if (class->address) {
		read_piece(function, class, PHP_CLASS_START, PHP_CLASS_BYTES,
			   PHP_CLASS_BYTES);
		class_name->address =
			*(u64 *)(function->bytes + PHP_CLASS_START +
				 PHP_CLASS_NAME);
		if (class->length)
			read_php_text(function, class_name,
				      PHP_CLASS_NAME_START);
	}
	if (function->bytes[0] == PHP_INTERNAL)
		return PHP_FILE_START;
	if (!read_user(&file->address, sizeof(u64),
		       link->code + layout->function_file) ||
	    !read_user(&code->address, sizeof(u64),
		       link->code + layout->function_opcodes) ||
	    !read_user(&count, sizeof(count),
		       link->code + layout->function_count))
		return 0;
	read_php_text(function, file, PHP_FILE_START);
	size = (u64)count * PHP_INSTRUCTION_BYTES;
	read_piece(function, code, PHP_INSTRUCTIONS_START,
		   PHP_INSTRUCTIONS_BYTES, size);
	return PHP_INSTRUCTIONS_START + (u64)code->length;
}

/* PHP has no lock that threads share. */
static __always_inline u32 php_lock_holder(struct language_layout *layout,
					   u64 base, u64 futex)
{
	return 0;
}

#endif
