/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * User stacks captured when threads return. A blocked thread does not change its user
 * stack, so the stack is the same at the return as at the departure. An interval that
 * does not count then needs no stack. At sched_switch the returning thread is not
 * current yet, and its memory cannot be read. At the end of __schedule() it is current
 * (sched_exit_tp, since 6.15). No other switch happens on the CPU in between.
 */
#ifndef SYSTEMSCOPE_RETURNS_H
#define SYSTEMSCOPE_RETURNS_H

#include "counts.h"
#include "stacks/stack_capture.h"
#include "clock/thread_clock.h"

/*
 * Set by user space where the kernel has sched_exit_tp. by_membership overrides it: a
 * thread that leaves a cgroup in its sleep would get no stack.
 */
const volatile bool stacks_at_return = false;

/* An interval that ended on this CPU and still needs its user stack. */
struct returning {
	/* 0 if there is none. */
	u64 task;
	/* switch_count() of the task at that time. */
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
 * Returns the user stack with which the current thread leaves its CPU, or
 * STACK_AT_RETURN. User space learns of a process by its first stack, and must do so
 * while the process exists. A process without tables may end as soon as it is back, so
 * its stack is captured at once.
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

/*
 * Returns whether to capture the stack at the return. Stacks that user space was to
 * read count as well.
 */
static __always_inline bool is_taken_at_return(u64 user)
{
	return stacks_at_return && !by_membership &&
	       (user == STACK_AT_RETURN || user & STACK_OF_PREEXISTING);
}

/* Counts the interval that waits for a user stack, with @user as its stack. */
static __noinline int count_returned(struct returning *returning, u64 user)
{
	volatile u32 *here = counting_here();

	if (!here)
		return 0;
	/* User space finds the interval here or in the map. */
	*here += 1;
	returning->task = 0;
	returning->key.user = user;
	count(&returning->key, &returning->weight);
	*here -= 1;
	return 0;
}

/* Stores an interval of @task, to be counted when @task is back. */
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
	/* The kernel did not show the return of the earlier thread. */
	if (returning->task)
		count_returned(returning, STACK_MISSED);
	returning->instance = thread->instance;
	returning->key = *key;
	returning->weight = *weight;
	returning->switches = switch_count(task);
	returning->task = (u64)task;
	/* The task came back unseen, and is about to leave from another place. */
	if (returning->task == bpf_get_current_task())
		count_returned(returning, STACK_MISSED);
}

/*
 * Counts the interval that waits on this CPU for @task, which is current. If another
 * thread is stored, or @task has left again since, the kernel did not show the return,
 * and the current stack is not the interval's.
 */
static __always_inline int count_returning(void *ctx, struct task_struct *task)
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
