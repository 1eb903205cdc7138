/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Window: the time that is measured. User space attaches all programs, then sets the
 * window's start. Each program compares its own clock reading with it, so all programs
 * begin at the same instant however long attaching took.
 */
#ifndef SYSTEMSCOPE_WINDOW_H
#define SYSTEMSCOPE_WINDOW_H

#include "kernel_types.h"
#include <bpf/bpf_helpers.h>

/* Start and end of the window, in ns of CLOCK_MONOTONIC; 0 while unknown. */
volatile u64 window_start = 0;
volatile u64 window_stop = 0;

/*
 * Returns the time in ns of CLOCK_MONOTONIC, or 0 before the window. After the window
 * it returns the window's end, at which programs can still close open intervals.
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
