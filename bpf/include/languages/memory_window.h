/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Reads frames that lie near each other in a runtime's own stack with few reads. */
#ifndef SYSTEMSCOPE_MEMORY_WINDOW_H
#define SYSTEMSCOPE_MEMORY_WINDOW_H

#include "languages/language.h"

/* Maximum bytes of one read, and of one frame. A read stays within one page. */
#define WINDOW_BYTES 1024
#define WINDOW_FRAME_BYTES 128
#define WINDOW_PAGE_BYTES 4096ULL

/* Direction in which the next frames are. */
enum window_direction {
	WINDOW_DOWNWARDS,
	WINDOW_UPWARDS,
};

/* Memory of a runtime's stack. */
struct memory_window {
	u64 start;
	/* 0 if nothing is read. */
	u64 length;
	/* Also has space for a word at any 7-bit offset in a frame at any 10-bit offset. */
	u8 bytes[WINDOW_BYTES + WINDOW_FRAME_BYTES + sizeof(u64)];
};

/*
 * Reads @bytes bytes at @address, at most WINDOW_FRAME_BYTES, unless an earlier read got
 * them. Returns whether they are read.
 */
static __always_inline bool read_window(struct memory_window *window,
					u64 address, u32 bytes,
					enum window_direction direction)
{
	u64 size;

	if (address >= window->start &&
	    address - window->start + bytes <= window->length)
		return true;
	/* The neighbouring pages may be missing. */
	if (bytes <= WINDOW_PAGE_BYTES - address % WINDOW_PAGE_BYTES) {
		window->start = address;
		if (direction == WINDOW_DOWNWARDS) {
			window->start =
				address - (WINDOW_BYTES - WINDOW_FRAME_BYTES);
			if ((window->start ^ address) & -WINDOW_PAGE_BYTES)
				window->start = address & -WINDOW_PAGE_BYTES;
		}
		size = WINDOW_PAGE_BYTES - window->start % WINDOW_PAGE_BYTES;
		if (size > WINDOW_BYTES)
			size = WINDOW_BYTES;
		window->length = size;
		barrier_var(size);
		if (size <= WINDOW_BYTES &&
		    read_user(window->bytes, size, window->start))
			return true;
	}
	window->start = address;
	window->length = bytes;
	asm volatile("%0 &= 127" : "+r"(bytes));
	if (read_user(window->bytes, bytes, address))
		return true;
	window->length = 0;
	return false;
}

/*
 * Returns the word at @offset of the frame at @address, which is read. The masks are for
 * older verifiers, which forget comparisons.
 */
static __always_inline u64 window_word(struct memory_window *window,
				       u64 address, u32 offset)
{
	u32 at = address - window->start;

	asm volatile("%0 &= 1023" : "+r"(at));
	asm volatile("%0 &= 127" : "+r"(offset));
	return *(u64 *)(window->bytes + at + offset);
}

#endif
