/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Starts the clocks of threads that exist when the window opens. */
#ifndef SYSTEMSCOPE_CLOCK_EDGES_H
#define SYSTEMSCOPE_CLOCK_EDGES_H

#include "clock/thread_clock.h"

/*
 * Starts the clock of @task, which had no event yet. Returns NULL if the task gets
 * none.
 */
static __always_inline struct thread *
start_clock(const struct clock_program *program, struct task_struct *task,
	    u64 now)
{
	enum thread_state state = THREAD_RUNNING;
	struct thread *thread;
	u64 key = (u64)task;

	/* A task that is being put on a run queue still has a state other than 0. */
	if (!task->on_cpu)
		state = task_state(task) & ~TASK_WAKING ? THREAD_BLOCKED :
							  THREAD_RUNNABLE;
	thread = new_thread(program, task, unseen_since(task, now), state,
			    DRAFT_IN_ITERATOR);
	/*
	 * The task may have died before it had a record, so that no event deletes the
	 * record.
	 */
	if (thread && (task_state(task) & TASK_DEAD)) {
		bpf_map_delete_elem(program->threads, &key);
		return NULL;
	}
	return thread;
}

/* Returns whether @thread has been off the CPU since @since, without a break. */
static __always_inline bool is_off_cpu(struct thread *thread, u64 since)
{
	return clock_state(*(volatile u64 *)&thread->clock) != THREAD_RUNNING &&
	       *(volatile u64 *)&thread->off_since == since;
}

#endif
