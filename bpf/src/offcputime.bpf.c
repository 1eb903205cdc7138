// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Time off CPU by stack: each interval counted when the thread is back. */
#include "clock/short_intervals.h"

/* And who ended its last wait, where that is wanted. */
#define THREAD_MEMBERS SHORT_TIMES u64 waker;

#include "targets/children.h"
#include "clock/clock_events.h"
#include "clock/intervals.h"
#include "stacks/stack_edges.h"
#include "targets/newcomers.h"
#include "waits/limits.h"
#include "waker_hops.h"

/* Whether it is noted who ended waits for futexes that are kept, and where. */
const volatile bool want_wakers = false;

static __always_inline void thread_left_cpu(void *ctx, struct task_struct *task,
					    struct thread *thread)
{
	if (want_wakers)
		thread->waker = WAKER_MISSED;
	if (!state_is_wanted(thread->off_state))
		return;
	thread->user = user_stack_left(ctx, task, thread);
	thread->lock_holder = thread->off_state ? lock_holder(task, thread) : 0;
	if (!thread->off_state && want_objects)
		thread->work.end = find_limit(task);
}

static __always_inline void thread_woken(void *ctx, struct task_struct *task,
					 struct thread *thread, u64 now)
{
	enum context context;

	if (!want_wakers || window_is_over(now) ||
	    !state_is_wanted(thread->off_state) ||
	    !length_is_wanted(thread->off_blocked))
		return;
	/* A timer, or another process that may have no tables. */
	context = current_context();
	if (!may_be_task(context) ||
	    thread->instance != process_instance(current_task()) ||
	    !waits_for_futex(task))
		return;
	thread->waker = capture_waker(ctx, task, context);
}

static __always_inline void off_cpu_interval(struct task_struct *task,
					     struct thread *thread, u64 blocked,
					     u64 runnable)
{
	u64 length = blocked + runnable, period = 0, waker = WAKER_MISSED;
	struct tally weight = {
		.events = 1,
		.longest = length,
		.shortest = length,
	};

	if (!state_is_wanted(thread->off_state))
		return;
	if (sample_short && length < min_interval) {
		period = min_interval;
		blocked = pass_short_time(&thread->short_blocked, blocked,
					  period);
		runnable = pass_short_time(&thread->short_runnable, runnable,
					   period);
		if (!blocked && !runnable)
			return;
	} else if (!length_is_wanted(length)) {
		return;
	} else if (want_wakers && blocked) {
		waker = thread->waker;
	}
	weight.blocked = blocked;
	weight.runnable = runnable;
	weight.squares = period ? 0 : square_of(length);
	count_interval(task, thread, waker, period, &weight);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
