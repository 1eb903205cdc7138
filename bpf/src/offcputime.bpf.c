// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Time off CPU by stack: each interval counted when the thread is back. */
#include "counts.h"
#include "interval_filter.h"
#include "stack_capture.h"
#include "stack_edges.h"
#include "thread_clock.h"

static __always_inline void thread_left_cpu(void *ctx, struct task_struct *task,
					    struct thread *thread)
{
	if (state_is_wanted(thread->off_state))
		thread->user = capture_user_stack(ctx, task, thread->instance,
						  thread->pid);
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
	};
	struct stack_key key = {};

	if (!length_is_wanted(length) || !state_is_wanted(thread->off_state))
		return;

	key.pid = thread->pid;
	key.tid = per_thread ? thread->tid : 0;
	key.user = want_user_stacks ? thread->user : STACK_NONE;
	key.kernel = capture_saved_kernel_stack(task, SCRATCH_HOOK);
	BPF_CORE_READ_STR_INTO(&key.comm, task, comm);
	count(&key, &weight);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
