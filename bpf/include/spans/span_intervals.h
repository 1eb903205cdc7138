/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Periods of output, which names here call intervals. The periods divide the window
 * without a gap. An event after the end of a period belongs to the next period, and
 * counts in the other slot from the first nanosecond on. User space later reads the
 * slot of the ended period and sets the next end.
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
/* Start of the period, in ns of CLOCK_MONOTONIC. User space sets it before @interval. */
volatile u64 interval_start = 0;

/*
 * Returns the current word of @interval. Callers read the time first, because an older
 * word then gives the same result.
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

/*
 * Minimum time in ns from the write of a period to the period's end. It is longer than
 * an interrupt takes.
 */
#define INTERVAL_NOTICE_NS 100000

/*
 * Sets the start of a period, the first argument, and its word, the second. Returns 1
 * and sets nothing if the end of the period has come or is too near. Programs would
 * otherwise have counted spans after that end as before it. User space runs this as a
 * program, because a program cannot lose its CPU between the read of the clock and the
 * write.
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
