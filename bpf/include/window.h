/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The window of time that is measured. User space attaches everything, then
 * sets its start; every program judges by its own clock reading, so they all
 * begin at the same instant however long attaching took.
 */
#ifndef SYSTEMSCOPE_WINDOW_H
#define SYSTEMSCOPE_WINDOW_H

#include "kernel_types.h"
#include <bpf/bpf_helpers.h>

/* CLOCK_MONOTONIC nanoseconds; 0 while not known. */
volatile u64 window_start = 0;
volatile u64 window_stop = 0;

/*
 * The time, or 0 before the window. After its end the clock stands still:
 * what is open can still be closed, at the instant at which the window ended.
 */
static __always_inline u64 window_now(void)
{
	u64 now = bpf_ktime_get_ns();
	u64 start = window_start;
	u64 stop = window_stop;

	if (!start || now < start)
		return 0;
	return stop && now > stop ? stop : now;
}

static __always_inline bool window_is_over(u64 now)
{
	u64 stop = window_stop;

	return stop && now >= stop;
}

#endif
