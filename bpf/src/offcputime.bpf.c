// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Time off CPU by stack: each interval counted when the thread is back. */
#include "children.h"
#include "clock/clock_events.h"
#include "clock/intervals.h"
#include "stacks/stack_edges.h"

static __always_inline void thread_left_cpu(void *ctx, struct task_struct *task,
					    struct thread *thread)
{
	if (state_is_wanted(thread->off_state))
		thread->user = user_stack_left(ctx, task, thread);
}

static __always_inline void thread_woken(void *ctx, struct task_struct *task,
					 struct thread *thread, u64 now)
{
}

static __always_inline void off_cpu_interval(struct task_struct *task,
					     struct thread *thread, u64 blocked,
					     u64 runnable)
{
	u64 length = blocked + runnable;
	struct tally weight = {
		.events = 1,
		.blocked = blocked,
		.runnable = runnable,
		.longest = length,
		.shortest = length,
		.squares = square_of(length),
	};

	if (!length_is_wanted(length) || !state_is_wanted(thread->off_state))
		return;
	count_interval(task, thread, 0, &weight);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
