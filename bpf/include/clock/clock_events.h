/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What drives the thread clock: a thread that leaves a CPU or gets one, is
 * woken, is born, or executes another program.
 */
#ifndef SYSTEMSCOPE_CLOCK_EVENTS_H
#define SYSTEMSCOPE_CLOCK_EVENTS_H

#include "clock/thread_clock.h"
#include "clock/work.h"

enum switch_arguments {
	/* preempt, prev, next: before 5.18. */
	SWITCH_WITHOUT_STATE,
	/* preempt, prev_state, prev, next: 5.18 for a while. */
	SWITCH_STATE_SECOND,
	/* preempt, prev, next, prev_state. */
	SWITCH_STATE_LAST,
};

/* Which of them the running kernel has, read from its BTF by user space. */
const volatile enum switch_arguments switch_arguments = SWITCH_STATE_LAST;

/* At sched_switch. */
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
	/* Its ID may be gone by now; whether it has a clock will show. */
	leaves = is_measured(prev) || (!preempt && (state & TASK_DEAD) &&
				       !ended_elsewhere(program, prev));
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

/* At sched_waking. */
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
	 * As long as it is on a CPU the record is that CPU's to write. Here
	 * it has yet to switch, or is just doing so.
	 */
	if (task->on_cpu) {
		thread->woken_early = 1;
		set_to_work_early(program, task, thread);
		return 0;
	}
	/* Whoever is woken had left. */
	if (clock_state(thread->clock) == THREAD_RUNNING)
		depart_belatedly(task, thread, task_state(task), now);
	if (clock_state(thread->clock) == THREAD_BLOCKED) {
		now = close_interval(thread, THREAD_BLOCKED, now);
		thread->off_blocked = now - thread->off_since;
		note_wait_end(program, task, thread);
		program->woken(ctx, task, thread, now);
		thread->clock = clock_at(now, THREAD_RUNNABLE);
	}
	return 0;
}

/* At sched_wakeup_new. */
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
	/* Of an earlier task at this address that ended unseen. */
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
 * At sched_process_exec. A thread that executes a program becomes its process's leader, and
 * takes the leader's ID: it may be measured from here on, or no longer.
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
 * At cgroup_attach_task: a task moved to another cgroup, or all of the process that it
 * leads: see clock/moves.h. Of a process with one thread the record tells whether that
 * matters.
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
	/* A leader that has ended stays where it was, whoever else moves. */
	if (!(BPF_CORE_READ(task, flags) & PF_EXITING)) {
		/* In a hierarchy of version 1. */
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
