/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Intervals that are too short to be kept, sampled: of the time that a thread
 * spends in them, each period's length of it keeps one, in each state for
 * itself. Which one is a point of time drawn anew in each period, so an interval
 * is kept with a probability in proportion to its length, and those that come
 * in step with others as often as these (stratified sampling: Cochran, Sampling
 * Techniques, chapter 5). Each that is kept stands for a period.
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
	/* After how many of them one is kept, from 1 on; 0 before the first. */
	u64 point;
};

/* Whether they are sampled; otherwise they are left out. */
const volatile bool sample_short = false;

/* Out of line, as it is drawn once a period. */
static __noinline u64 random_point(u64 period)
{
	u64 random = (u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();

	return 1 + random % period;
}

/*
 * Adds @length, which is less than @period. Returns the nanoseconds that it
 * stands for: a period for each point in it, of which two neighbours have one
 * each.
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
