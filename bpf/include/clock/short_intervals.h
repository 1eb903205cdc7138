/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Samples intervals that are too short to count each of them. The time of a thread in
 * such intervals is divided into periods, separately for each state. Each period keeps
 * one interval. A random point within the period selects it, so an interval is kept
 * with a probability in proportion to its length. A program cannot be in step with the
 * points, because each period has a new point. Each kept interval stands for one
 * period. The method is stratified sampling: Cochran, Sampling Techniques, chapter 5.
 *
 * A program's record of a thread has a struct short_time for each state.
 */
#ifndef SYSTEMSCOPE_SHORT_INTERVALS_H
#define SYSTEMSCOPE_SHORT_INTERVALS_H

#include "kernel_types.h"
#include <bpf/bpf_helpers.h>

/* A thread's time in short intervals, in one state. */
struct short_time {
	/* Nanoseconds of the current period that have passed. */
	u64 passed;
	/*
	 * Point in the current period that selects an interval: 1 to the length of the
	 * period, in nanoseconds; 0 before the first draw.
	 */
	u64 point;
};

/* True to sample short intervals, false to leave them out. */
const volatile bool sample_short = false;

/*
 * Draws a point from 1 to @period. The function is out of line because it runs once a
 * period.
 */
static __noinline u64 random_point(u64 period)
{
	u64 random = (u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();

	return 1 + random % period;
}

/*
 * Adds an interval of @length ns, which is less than @period. Returns the nanoseconds
 * for which it stands: one period for each point in it. An interval across the border
 * of two periods can contain the point of each period.
 */
static __always_inline u64 pass_short_time(struct short_time *time, u64 length,
					   u64 period)
{
	u64 weight = 0;

	if (!time->point)
		time->point = random_point(period);
	if (time->passed < time->point && time->point <= time->passed + length)
		weight += period;
	time->passed += length;
	if (time->passed >= period) {
		time->passed -= period;
		time->point = random_point(period);
		if (time->point <= time->passed)
			weight += period;
	}
	return weight;
}

#endif
