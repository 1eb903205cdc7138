// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Blocked time by the sleeper's stack and who woke it. */
#include "wakers.h"

#include "targets/children.h"
#include "clock/clock_events.h"
#include "clock/intervals.h"
#include "stacks/stack_edges.h"
#include "targets/newcomers.h"

static __always_inline void thread_left_cpu(void *ctx, struct task_struct *task,
					    struct thread *thread)
{
	u32 state = thread->off_state;

	/* Preempted: the wait before it is still its last. */
	if (!state)
		return;
	thread->wake.waker = WAKER_MISSED;
	if (!state_is_wanted(state) || !is_chosen(task))
		return;
	thread->user = user_stack_left(ctx, task, thread);
	thread->lock_holder = lock_holder(task, thread);
}

static __always_inline void thread_woken(void *ctx, struct task_struct *task,
					 struct thread *thread, u64 now)
{
	bool counts = is_chosen(task) && state_is_wanted(thread->off_state) &&
		      length_is_wanted(thread->off_blocked);
	struct thread *waking = NULL;
	enum context context;
	u64 waker;

	if (window_is_over(now)) {
		thread->wake.waker = WAKER_STILL_BLOCKED;
		return;
	}
	context = current_context();
	if (counts && !waker_is_wanted(context)) {
		counts = false;
		thread->wake.waker = WAKER_UNWANTED;
	}
	if (!counts && chain_length == 1)
		return;

	waker = capture_waker(ctx, task, context);
	if (chain_length > 1 && may_be_task(context))
		waking = find_thread((void *)bpf_get_current_task());
	follow_chain(&thread->wake, waker, waking ? &waking->wake : NULL);
	if (!counts)
		return;
	if (thread->wake.hop_count > 1)
		waker = publish_chain(&thread->wake);
	thread->wake.waker = waker;
}

static __always_inline void off_cpu_interval(struct task_struct *task,
					     struct thread *thread, u64 blocked,
					     u64 runnable)
{
	u64 waker = thread->wake.waker;
	struct tally weight = {
		.events = 1,
		.blocked = blocked,
		.runnable = runnable,
		.longest = blocked,
		.shortest = blocked,
		.squares = square_of(blocked),
	};

	if (!blocked || !length_is_wanted(blocked) ||
	    !state_is_wanted(thread->off_state) || !is_chosen(task))
		return;
	if (waker <= WAKER_UNWANTED && !any_waker_is_wanted())
		return;
	count_interval(task, thread, waker, 0, &weight);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
