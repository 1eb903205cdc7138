/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * User stacks of threads that are back. What a thread left in user space it finds
 * again, so its stack is the same when it returns as when it blocked, and an interval
 * that does not count needs none. At sched_switch a thread that returns is not current
 * yet, and its memory cannot be read; at the end of __schedule() it is
 * (sched_exit_tp, since 6.15). On one CPU nothing is switched in between.
 */
#ifndef SYSTEMSCOPE_RETURNS_H
#define SYSTEMSCOPE_RETURNS_H

#include "counts.h"
#include "stacks/stack_capture.h"
#include "clock/thread_clock.h"

/*
 * Whether stacks are taken then; where membership counts they are not, as of a
 * thread that leaves a cgroup in its sleep there would be none.
 */
const volatile bool stacks_at_return = false;

/* An interval that ended on this CPU and has yet to get its user stack. */
struct returning {
	/* 0 if there is none. */
	u64 task;
	/* How often the task had left a CPU by then: see switch_count(). */
	u64 switches;
	u64 instance;
	struct stack_key key;
	struct tally weight;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct returning);
} returning_here SEC(".maps");

/*
 * The user stack with which the current thread leaves its CPU, or when to take it.
 * User space learns of a process by its first stack, and must before that is gone:
 * one that has no tables yet may end as soon as it is back.
 */
static __always_inline u64 user_stack_left(void *ctx, struct task_struct *task,
					   struct thread *thread)
{
	if (stacks_at_return && !by_membership && thread->instance &&
	    has_tables(thread->pid, thread->instance))
		return STACK_AT_RETURN;
	return capture_user_stack(ctx, SCRATCH_HOOK, task, thread->instance,
				  thread->pid);
}

/* Whether @user is to be taken now: so are those that user space was to read. */
static __always_inline bool is_taken_at_return(u64 user)
{
	return stacks_at_return && !by_membership &&
	       (user == STACK_AT_RETURN || user & STACK_OF_PREEXISTING);
}

/* Counts what waits for a user stack, with @user as that. */
static __noinline int count_returned(struct returning *returning, u64 user)
{
	volatile u32 *here = counting_here();

	if (!here)
		return 0;
	/* User space finds it here or there. */
	*here += 1;
	returning->task = 0;
	returning->key.user = user;
	count(&returning->key, &returning->weight);
	*here -= 1;
	return 0;
}

/* Counts an interval of @task when that is back. */
static __always_inline void count_at_return(struct task_struct *task,
					    struct thread *thread,
					    const struct stack_key *key,
					    const struct tally *weight)
{
	struct returning *returning;
	u32 zero = 0;

	returning = bpf_map_lookup_elem(&returning_here, &zero);
	if (!returning)
		return;
	/* Its thread's return was not shown to us. */
	if (returning->task)
		count_returned(returning, STACK_MISSED);
	returning->instance = thread->instance;
	returning->key = *key;
	returning->weight = *weight;
	returning->switches = switch_count(task);
	returning->task = (u64)task;
	/* It came back unseen, and is about to leave from elsewhere. */
	if (returning->task == bpf_get_current_task())
		count_returned(returning, STACK_MISSED);
}

/*
 * Counts what waits on this CPU for @task, which is current. Of another thread, or if this
 * one has left again since, the return was not shown to us, and the stack is not that of
 * the interval.
 */
static __always_inline int count_who_is_back(void *ctx,
					     struct task_struct *task)
{
	struct returning *returning;
	u32 zero = 0;
	u64 user;

	returning = bpf_map_lookup_elem(&returning_here, &zero);
	if (!returning || !returning->task)
		return 0;
	user = STACK_MISSED;
	if (returning->task == (u64)task &&
	    returning->switches == switch_count(untrusted(task)))
		user = capture_user_stack(ctx, SCRATCH_RETURN, task,
					  returning->instance,
					  returning->key.pid);
	return count_returned(returning, user);
}

#endif
