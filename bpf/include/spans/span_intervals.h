/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The window is divided into periods of output, called intervals in names here, that
 * follow each other without a gap. An event after the end of a period belongs to the
 * next period, and counts in the other slot from the first nanosecond on. User space
 * comes later to read the slot and to set the next end.
 */
#ifndef SYSTEMSCOPE_SPAN_INTERVALS_H
#define SYSTEMSCOPE_SPAN_INTERVALS_H

#include "spans/span_counts.h"
#include "window.h"

/*
 * End of the period in ns of CLOCK_MONOTONIC, and its slot: end << 1 | slot. It is one
 * word, so that readers get both parts of one update.
 */
volatile u64 interval = 0;
/* Start of the period; set before the word. */
volatile u64 interval_start = 0;

/*
 * Returns the current word. Callers read the time first: an older word gives the same
 * result.
 */
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

/* Longer than an interrupt takes. */
#define INTERVAL_NOTICE_NS 100000

/*
 * Sets the start of a period, the first argument, and its word, the second. Returns 1
 * if its end is already here, since spans after that end have then been counted as
 * before it. User space runs this: it could lose its CPU between reading the clock and
 * writing, a program cannot.
 */
static __always_inline int try_begin_interval(u64 *arguments)
{
	u64 start = arguments[0], word = arguments[1];

	if (bpf_ktime_get_ns() + INTERVAL_NOTICE_NS > interval_end(word))
		return 1;
	interval_start = start;
	interval = word;
	return 0;
}

#endif
