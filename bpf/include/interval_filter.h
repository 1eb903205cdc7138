/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Which off-CPU intervals count, by their length and the state they began in. */
#ifndef SYSTEMSCOPE_INTERVAL_FILTER_H
#define SYSTEMSCOPE_INTERVAL_FILTER_H

#include "kernel_types.h"

/* Bounds on an interval's length, both inclusive, nanoseconds. */
const volatile u64 min_interval = 0;
const volatile u64 max_interval = ~0ULL;

/* Which task states count: STATES_ALL, STATES_RUNNABLE, or those in a mask. */
enum {
	STATES_ALL,
	STATES_RUNNABLE,
	STATES_IN_MASK,
};

const volatile u32 state_filter = STATES_ALL;
const volatile u32 state_mask = 0;

static __always_inline bool state_is_wanted(u32 state)
{
	if (state_filter == STATES_RUNNABLE)
		return !state;
	return state_filter == STATES_ALL || (state & state_mask);
}

static __always_inline bool length_is_wanted(u64 length)
{
	return length >= min_interval && length <= max_interval;
}

#endif
