/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Selects the off-CPU intervals that count, by their length and first state, and counts
 * each interval under its key.
 */
#ifndef SYSTEMSCOPE_INTERVALS_H
#define SYSTEMSCOPE_INTERVALS_H

#include "counts.h"
#include "stacks/named_threads.h"
#include "stacks/stack_capture.h"
#include "clock/returns.h"
#include "clock/thread_clock.h"
#include "clock/lane_events.h"
#include "waits/objects.h"

/* Bounds on an interval's length, both inclusive, in nanoseconds. */
const volatile u64 min_interval = 0;
const volatile u64 max_interval = ~0ULL;

/* Task states that count: all, only runnable, or the states in state_mask. */
enum state_filter {
	STATES_ALL,
	STATES_RUNNABLE,
	STATES_IN_MASK,
};

const volatile enum state_filter state_filter = STATES_ALL;
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

/* Weight of an off-CPU interval. */
struct weighed {
	/* Waker that ended the interval, if the command line asks for wakers. */
	u64 waker;
	/* See struct stack_key. */
	u64 period;
	struct tally weight;
};

/*
 * Computes the weight of an off-CPU interval of @thread, which was blocked for @blocked
 * ns and then runnable for @runnable ns. Returns whether the interval counts, and then
 * sets @weighed. @is_open: true if no switch-in ended the interval. The window's end,
 * or the end of the thread's measurement, cut it short.
 */
typedef bool weigh_interval(struct thread *thread, u64 blocked, u64 runnable,
			    bool is_open, struct weighed *weighed);

/*
 * Counts an interval of @task, which is about to run on a CPU again. @period: see
 * struct stack_key. The function is out of line so that its key takes no space on the
 * stack of the sched_switch program.
 */
static __noinline int count_interval(struct task_struct *task,
				     struct thread *thread, u64 waker,
				     u64 period, const struct tally *weight)
{
	struct stack_key key = {
		.pid = thread->pid,
		.tid = counts_each_thread(thread->pid) ? thread->tid : 0,
		.user = want_user_stacks ? thread->user : STACK_NONE,
		.waker = waker,
		.period = period,
	};

	key.kernel = capture_saved_kernel_stack(task, SCRATCH_HOOK);
	if (want_objects) {
		key.wait_end = thread->work.end;
		if (weight->blocked)
			key.object = capture_object(task, thread, SCRATCH_HOOK);
	}
	BPF_CORE_READ_STR_INTO(&key.comm, task, comm);
	if (is_taken_at_return(key.user)) {
		count_at_return(task, thread, &key, weight);
	} else {
		count(&key, weight);
		send_counted(thread, &key);
	}
	return 0;
}

#endif
