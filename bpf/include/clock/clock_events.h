/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Events that drive the thread clock: a thread leaves a CPU, gets a CPU, wakes up, is
 * born, or executes another program.
 */
#ifndef SYSTEMSCOPE_CLOCK_EVENTS_H
#define SYSTEMSCOPE_CLOCK_EVENTS_H

#include "clock/thread_clock.h"
#include "clock/work.h"

enum switch_arguments {
	/* preempt, prev, next: before 5.18. */
	SWITCH_WITHOUT_STATE,
	/* preempt, prev_state, prev, next: some releases of 5.18. */
	SWITCH_STATE_SECOND,
	/* preempt, prev, next, prev_state. */
	SWITCH_STATE_LAST,
};

/* Arguments on the running kernel, which user space reads from BTF. */
const volatile enum switch_arguments switch_arguments = SWITCH_STATE_LAST;

/* Handles sched_switch. */
static __always_inline int follow_switch(const struct clock_program *program,
					 u64 *ctx)
{
	struct task_struct *prev, *next;
	bool preempt = ctx[0], leaves, enters;
	u32 state;
	u64 now;

	if (switch_arguments == SWITCH_STATE_LAST) {
		prev = (void *)ctx[1];
		next = (void *)ctx[2];
		state = ctx[3];
	} else if (switch_arguments == SWITCH_STATE_SECOND) {
		state = ctx[1];
		prev = (void *)ctx[2];
		next = (void *)ctx[3];
	} else {
		prev = (void *)ctx[1];
		next = (void *)ctx[2];
		state = task_state(prev);
	}
	/*
	 * A dying task may have lost its ID by now. switch_out() then checks whether
	 * the task has a clock.
	 */
	leaves = is_measured(prev) || (!preempt && (state & TASK_DEAD) &&
				       !end_if_departed(program, prev));
	enters = is_measured(next);
	if (!leaves && !enters)
		return 0;
	now = window_now();
	if (!now)
		return 0;
	if (leaves)
		switch_out(program, ctx, prev, preempt, state, now);
	if (enters)
		switch_in(program, next, now);
	return 0;
}

/* Handles sched_waking. */
static __always_inline int follow_waking(const struct clock_program *program,
					 u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct thread *thread;
	u64 now;

	if (!is_measured(task))
		return 0;
	now = window_now();
	if (!now)
		return 0;
	thread = find_thread(program, task);
	if (!thread) {
		thread = new_thread(program, task, unseen_since(task, now),
				    task->on_cpu ? THREAD_RUNNING :
						   THREAD_BLOCKED,
				    DRAFT_AT_SWITCH);
		if (!thread)
			return 0;
	}
	/*
	 * While the task is on a CPU, only that CPU writes the record. Here the task
	 * has not left the CPU yet, or is just leaving it.
	 */
	if (task->on_cpu) {
		thread->woken_early = 1;
		set_to_work_early(program, task, thread);
		return 0;
	}
	/* The task is off the CPU, so the kernel did not show its switch-out. */
	if (clock_state(thread->clock) == THREAD_RUNNING)
		depart_belatedly(program, task, thread, task_state(task), now);
	if (clock_state(thread->clock) == THREAD_BLOCKED) {
		now = close_interval(program, thread, THREAD_BLOCKED, now);
		thread->off_blocked = now - thread->off_since;
		note_wait_end(program, task, thread);
		program->woken(ctx, task, thread, now);
		thread->clock = clock_at(now, THREAD_RUNNABLE);
	}
	return 0;
}

/* Handles sched_wakeup_new. */
static __always_inline int follow_birth(const struct clock_program *program,
					u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct thread *thread;
	u64 key = (u64)task;
	u64 now;

	if (!is_measured(task))
		return 0;
	now = window_now();
	if (!now)
		return 0;
	/* Deletes the record of an earlier task at this address whose end was not seen. */
	bpf_map_delete_elem(program->threads, &key);
	thread = new_thread(program, task, now, THREAD_RUNNABLE,
			    DRAFT_AT_SWITCH);
	if (thread) {
		thread->user = STACK_NONE;
		set_to_work_by_birth(thread);
	}
	return 0;
}

/*
 * Handles sched_process_exec. A thread that executes a program becomes its process's
 * leader, and takes the leader's ID. From here on the thread may become measured, or
 * stop being measured.
 */
static __always_inline int follow_exec(const struct clock_program *program,
				       u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct thread *thread = find_thread(program, task);
	bool measured = is_measured(task);
	u64 now;

	if (!thread && !measured)
		return 0;
	now = window_now();
	if (!now)
		return 0;
	if (!thread) {
		new_thread(program, task, moved_by(task, now), THREAD_RUNNING,
			   DRAFT_AT_EXEC);
	} else if (measured) {
		thread->tid = namespace_tid(task);
		set_ids(task, thread);
	} else {
		leave(program, task, thread, now);
	}
	return 0;
}

/*
 * Handles cgroup_attach_task: a task, or its whole process, moved to another cgroup.
 * clock/moves.h explains moves. If only one thread moved, its record shows whether the
 * move matters.
 */
static __always_inline int follow_move(const struct clock_program *program,
				       u64 *ctx)
{
	struct cgroup *to = (void *)ctx[0];
	struct task_struct *task = (void *)ctx[2];
	bool whole_process = ctx[3];
	u32 pid = BPF_CORE_READ(task, tgid);
	u64 now = window_now();
	u32 *event;

	if (!now || window_is_over(now))
		return 0;
	/* An ended leader stays in its cgroup when other threads move. */
	if (!(BPF_CORE_READ(task, flags) & PF_EXITING)) {
		/* The move was in a hierarchy of version 1. */
		if (task_cgroup(task) != to)
			return 0;
		if ((!whole_process ||
		     BPF_CORE_READ(task, signal, nr_threads) == 1) &&
		    is_measured(task) == !!find_thread(program, task))
			return 0;
	}
	bpf_map_update_elem(&moved, &pid, &now, BPF_ANY);
	__sync_fetch_and_add(&moves, 1);
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (event) {
		*event = EVENT_MOVED;
		bpf_ringbuf_submit(event, CANNOT_WAIT);
	}
	return 0;
}

#endif
