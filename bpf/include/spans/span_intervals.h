/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The window is cut into intervals that follow each other without a gap. What
 * happens after the end of one belongs to the next, and is counted in the other
 * slot, from the first nanosecond on: user space comes later to read the slot
 * and to set the next end.
 */
#ifndef SYSTEMSCOPE_SPAN_INTERVALS_H
#define SYSTEMSCOPE_SPAN_INTERVALS_H

#include "spans/span_counts.h"
#include "window.h"

/*
 * When the interval ends, CLOCK_MONOTONIC ns, and in which slot it is counted:
 * end << 1 | slot. One word, so that nobody sees one without the other.
 */
volatile u64 interval = 0;
/* When it began; set before the word. */
volatile u64 interval_start = 0;

/* To be called after the time was read: a word that is older says the same. */
static __always_inline u64 current_interval(void)
{
	return interval;
}

static __always_inline u64 interval_end(u64 word)
{
	return word >> 1;
}

static __always_inline u32 interval_slot(u64 word)
{
	return word & 1;
}

#endif
