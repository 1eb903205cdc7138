/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Data of lanes: see clock/lanes.h. */
#ifndef SYSTEMSCOPE_LANE_H
#define SYSTEMSCOPE_LANE_H

#include "kernel_types.h"

/* True if the command line asks for a timeline. */
const volatile bool want_timeline = false;

/* Minimum length of an interval with an entry of its own, in nanoseconds. */
const volatile u64 timeline_least = 0;

/*
 * Length from which a stretch is sent although no off-CPU interval follows it, in
 * nanoseconds. A recorder of the last seconds drops a stretch that began before them.
 */
const volatile u64 timeline_max_stretch = ~0ULL;

/* Time in each state, in nanoseconds. */
struct state_times {
	u64 running;
	u64 runnable;
	u64 blocked;
};

/*
 * Part of a thread's lane: a stretch of running and short intervals, and the off-CPU
 * interval after it.
 */
struct lane_part {
	/* Start of the stretch, in ns of CLOCK_MONOTONIC. */
	u64 start;
	struct state_times stretch;
	/*
	 * Time blocked and then runnable after the stretch, in nanoseconds; 0 if the
	 * time is in a stretch.
	 */
	u64 blocked;
	u64 runnable;
};

/* The part of a thread's lane that is not sent yet. */
struct lane {
	/* End of what was sent, in ns of CLOCK_MONOTONIC. */
	u64 since;
	/* Running intervals of at least timeline_least ns, and the others between them. */
	struct state_times stretch;
	/* Intervals since then, each shorter than timeline_least. */
	struct state_times shorts;
	/* Part with an off-CPU interval that is being counted. */
	struct lane_part pending;
	/* 1 if the command line asks for the thread. */
	u64 is_wanted;
};

#endif
