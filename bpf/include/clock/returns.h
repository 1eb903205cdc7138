/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Captures user stacks when threads return to a CPU. A thread off the CPU does not
 * change its user stack, so the stack at the return is the stack at the departure.
 * Programs thus capture no stack for an interval that does not count.
 *
 * At sched_switch the returning thread is not current yet, so programs cannot read its
 * memory. It is current at sched_exit_tp, which kernels since 6.15 have at the end of
 * __schedule(). The CPU does no other switch between these two tracepoints.
 */
#ifndef SYSTEMSCOPE_RETURNS_H
#define SYSTEMSCOPE_RETURNS_H

#include "counts.h"
#include "stacks/stack_capture.h"
#include "clock/thread_clock.h"
#include "clock/lane_events.h"

/*
 * True if the kernel has sched_exit_tp; set by user space. It has no effect if
 * by_membership is set, because a thread that leaves a cgroup while it sleeps would get
 * no stack.
 */
const volatile bool stacks_at_return = false;

/* Interval that ended on this CPU and still needs its user stack. */
struct returning {
	/* Address of the task; 0 if no interval needs its stack. */
	u64 task;
	/* switch_count() of the task when the interval ended. */
	u64 switches;
	u64 instance;
	struct stack_key key;
	struct tally weight;
	/* Part of the thread's lane with the interval; all 0 if there is none. */
	struct lane_part part;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct returning);
} returning_here SEC(".maps");

/*
 * Returns the ID of the current thread's user stack as the thread leaves its CPU, or
 * STACK_AT_RETURN if the stack is captured later. User space learns of a process from
 * its first stack, and can make its unwind tables only while the process exists. A
 * process without tables may exit right after it returns, so its stack is captured at
 * once.
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
 * Returns whether to capture the stack @user at the thread's return. This includes
 * stacks with STACK_OF_PREEXISTING, which user space would read otherwise.
 */
static __always_inline bool is_taken_at_return(u64 user)
{
	return stacks_at_return && !by_membership &&
	       (user == STACK_AT_RETURN || user & STACK_OF_PREEXISTING);
}

/* Counts the interval in @returning with the user stack @user. */
static __noinline int count_returned(struct returning *returning, u64 user)
{
	volatile u32 *here = counting_here();

	if (!here)
		return 0;
	/*
	 * User space waits while this CPU counts. It therefore finds the interval
	 * either in @returning or in the map of counts.
	 */
	*here += 1;
	returning->task = 0;
	returning->key.user = user;
	count(&returning->key, &returning->weight);
	if (want_timeline && returning->part.start)
		send_lane(&returning->key, &returning->part, true);
	*here -= 1;
	return 0;
}

/*
 * Stores an interval of @task, which count_returning() counts when @task is back on the
 * CPU.
 */
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
	/* The kernel ran no program when the thread of the stored interval returned. */
	if (returning->task)
		count_returned(returning, STACK_MISSED);
	returning->instance = thread->instance;
	returning->key = *key;
	returning->weight = *weight;
	if (want_timeline) {
		returning->part = (struct lane_part){};
		/* A sampled interval stands for others, so it is not sent as counted. */
		if (has_pending(&thread->lane) && !key->period) {
			if (thread->lane.is_wanted)
				returning->part = thread->lane.pending;
			thread->lane.pending = (struct lane_part){};
		}
	}
	returning->switches = switch_count(task);
	returning->task = (u64)task;
	/*
	 * The kernel ran no program when the task returned. The task is current and
	 * about to leave the CPU again, with another user stack.
	 */
	if (returning->task == bpf_get_current_task())
		count_returned(returning, STACK_MISSED);
}

/*
 * Counts the interval that is stored on this CPU. @task is current. If the interval is
 * of another thread, or @task has left the CPU again since, the kernel ran no program
 * at the return. The interval then gets STACK_MISSED, because the current stack is not
 * that of the interval.
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
