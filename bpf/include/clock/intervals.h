/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Which off-CPU intervals count, by their length and the state they began in,
 * and under what.
 */
#ifndef SYSTEMSCOPE_INTERVALS_H
#define SYSTEMSCOPE_INTERVALS_H

#include "counts.h"
#include "stacks/stack_capture.h"
#include "clock/returns.h"
#include "clock/thread_clock.h"
#include "waits/objects.h"

/* Bounds on an interval's length, both inclusive, nanoseconds. */
const volatile u64 min_interval = 0;
const volatile u64 max_interval = ~0ULL;

/* Which task states count: STATES_ALL, STATES_RUNNABLE, or those in a mask. */
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

/* What an off-CPU interval counts for. */
struct weighed {
	/* Who ended it, where that is asked. */
	u64 waker;
	/* See struct stack_key. */
	u64 period;
	struct tally weight;
};

/*
 * Whether an off-CPU interval counts that began as @thread says, was @blocked ns and then
 * @runnable ns long, and is of a thread that is chosen; and what for. @is_open: the window's end
 * has ended it, or the end of the thread's stay where it is measured.
 */
typedef bool weigh_interval(struct thread *thread, u64 blocked, u64 runnable,
			    bool is_open, struct weighed *weighed);

/*
 * Counts an interval of @task, which is about to be back on a CPU. @period: see
 * struct stack_key. Out of line, so that its key is not on the stack of all that
 * sched_switch does.
 */
static __noinline int count_interval(struct task_struct *task,
				     struct thread *thread, u64 waker,
				     u64 period, const struct tally *weight)
{
	struct stack_key key = {
		.pid = thread->pid,
		.tid = per_thread ? thread->tid : 0,
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
	if (is_taken_at_return(key.user))
		count_at_return(task, thread, &key, weight);
	else
		count(&key, weight);
	return 0;
}

#endif
