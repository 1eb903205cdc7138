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

/* Longer than an interrupt. */
#define INTERVAL_NOTICE_NS 100000

/*
 * Run by user space: an interval that began at the first argument ends, and is counted,
 * as the word that is the second one says. An end that has come by then is refused, with
 * 1: what followed it was counted as before it. User space may lose its CPU between
 * looking at the clock and writing; this program cannot.
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
