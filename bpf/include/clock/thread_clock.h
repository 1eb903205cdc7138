/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The thread clock. At every instant a thread is running, runnable (waiting
 * for a CPU) or blocked. One record per thread holds its state, since when,
 * and the nanoseconds spent in each; every scheduler event closes one
 * interval and opens the next, so the three add up to the thread's life in
 * the window.
 *
 * A thread that was there before the window is found either by its first
 * event or by find_preexisting (clock_edges.h), whichever comes first: until its
 * first event it is in the state that it had when the window opened.
 *
 * The program says in its struct clock_program what it does with an interval.
 */
#ifndef SYSTEMSCOPE_THREAD_CLOCK_H
#define SYSTEMSCOPE_THREAD_CLOCK_H

#include "clock/thread_record.h"

/*
 * Adds the open interval to @state's sum. Returns when it ended, which is
 * where the next begins: @now, or later if another CPU, whose event we waited
 * for after reading the time, began the interval after that.
 */
static __always_inline u64 close_interval(struct thread *thread,
					  enum thread_state state, u64 now)
{
	u64 since = clock_since(*(volatile u64 *)&thread->clock);

	if (now < since)
		now = since;
	if (state == THREAD_RUNNING)
		thread->running += now - since;
	else if (state == THREAD_RUNNABLE)
		thread->runnable += now - since;
	else
		thread->blocked += now - since;
	return now;
}

/*
 * The same in the state that the thread is in. @was_woken: if it is blocked by its record, it
 * was woken between its decision to sleep and the switch. The waker's event came first, and all
 * of the time was a wait for a CPU.
 */
static __always_inline u64 close_any_interval(struct thread *thread,
					      bool was_woken, u64 now)
{
	enum thread_state state = clock_state(thread->clock);

	if (state == THREAD_BLOCKED && was_woken)
		state = THREAD_RUNNABLE;
	now = close_interval(thread, state, now);
	if (state == THREAD_BLOCKED)
		thread->off_blocked = now - thread->off_since;
	return now;
}

/* The thread got a CPU: ends its off-CPU interval. */
static __always_inline void arrive(const struct clock_program *program,
				   struct task_struct *task,
				   struct thread *thread, u64 now)
{
	enum thread_state state = clock_state(thread->clock);
	u64 off;

	now = close_any_interval(thread, thread->woken_early, now);
	off = now - thread->off_since;
	if (state != THREAD_RUNNING && off)
		program->off_cpu(task, thread, thread->off_blocked,
				 off - thread->off_blocked);
	thread->woken_early = 0;
	thread->ran_before = time_run(task);
	thread->clock = clock_at(now, THREAD_RUNNING);
}

/*
 * The current thread runs, and its switch-in was not shown to us. The
 * scheduler knows how long ago that was.
 */
static __always_inline void
arrive_belatedly(const struct clock_program *program, struct task_struct *task,
		 struct thread *thread, u64 now)
{
	u64 since = clock_since(thread->clock);
	u64 ran = time_run(task) - thread->ran_before;

	if (!window_is_over(now))
		__sync_fetch_and_add(&lost.switches, 1);
	arrive(program, task, thread, now > since + ran ? now - ran : since);
	thread->ran_before -= ran;
}

/* When the thread left, if it is off its CPU and its record says it runs. */
static __always_inline u64 unseen_departure(struct task_struct *task,
					    struct thread *thread, u64 now)
{
	u64 since = clock_since(thread->clock);
	u64 ran = time_run(task) - thread->ran_before;

	return now > since && ran < now - since ? since + ran : now;
}

/*
 * The thread left its CPU, for @state, and that was not shown to us. Where it
 * was then nobody saw; how long it ran the scheduler knows.
 */
static __always_inline void depart_belatedly(struct task_struct *task,
					     struct thread *thread, u32 state,
					     u64 now)
{
	now = unseen_departure(task, thread, now);
	if (!window_is_over(now))
		__sync_fetch_and_add(&lost.switches, 1);
	now = close_interval(thread, THREAD_RUNNING, now);
	thread->off_since = now;
	thread->off_blocked = 0;
	thread->off_state = state;
	thread->ran_before = time_run(task);
	thread->user = has_no_user_stack(task) ? STACK_NONE : STACK_MISSED;
	thread->lock_holder = 0;
	thread->work.end = WAIT_END_UNKNOWN;
	*(volatile u64 *)&thread->clock =
		clock_at(now, state ? THREAD_BLOCKED : THREAD_RUNNABLE);
}

/* The thread is no longer measured: since it moved, if that is why. */
static __always_inline void leave(const struct clock_program *program,
				  struct task_struct *task,
				  struct thread *thread, u64 now)
{
	now = close_interval(thread, clock_state(thread->clock),
			     moved_by(task, now));
	end_thread(program, task, thread, now);
}

/*
 * @task ends where it is not measured, and so does its record if it had moved
 * there. Returns whether that can be: IDs can be gone as well.
 */
static __always_inline bool ended_elsewhere(const struct clock_program *program,
					    struct task_struct *task)
{
	struct thread *thread;
	u64 now;

	if (!by_membership)
		return false;
	thread = find_thread(program, task);
	now = window_now();
	if (thread && now)
		leave(program, task, thread, now);
	return true;
}

/*
 * The record of @task if that was measured and is no longer. A thread that is
 * on its way out ends its record itself.
 */
static __always_inline struct thread *
find_departed_thread(const struct clock_program *program,
		     struct task_struct *task)
{
	if (is_measured(task) || BPF_CORE_READ(task, flags) & PF_EXITING)
		return NULL;
	return find_thread(program, task);
}

static __always_inline void switch_out(const struct clock_program *program,
				       void *ctx, struct task_struct *task,
				       bool preempt, u32 state, u64 now)
{
	struct thread *thread = find_thread(program, task);
	bool voluntary = !preempt && state;
	bool blocked;

	if (!thread) {
		if ((state & TASK_DEAD) && !is_measured(task))
			return;
		thread = new_thread(program, task, unseen_since(task, now),
				    THREAD_RUNNING, DRAFT_AT_SWITCH);
		if (!thread)
			return;
	}
	if (clock_state(thread->clock) != THREAD_RUNNING)
		arrive_belatedly(program, task, thread, now);
	now = close_interval(thread, THREAD_RUNNING, now);

	if (voluntary && (state & TASK_DEAD)) {
		end_thread(program, task, thread, now);
		return;
	}
	/* As __schedule() counts them. */
	if (!window_is_over(now)) {
		if (voluntary)
			thread->voluntary++;
		else
			thread->involuntary++;
	}
	/*
	 * With a signal pending __schedule() makes the task runnable again
	 * but, in some kernels, still reports the state it wanted to sleep in.
	 */
	blocked = voluntary && task_state(task);
	thread->off_since = now;
	thread->off_blocked = 0;
	thread->off_state = blocked ? state : 0;
	thread->ran_before = time_run(task);
	thread->work.end = WAIT_END_UNKNOWN;
	program->left_cpu(ctx, task, thread);
	barrier();
	*(volatile u64 *)&thread->clock =
		clock_at(now, blocked ? THREAD_BLOCKED : THREAD_RUNNABLE);
}

static __always_inline void switch_in(const struct clock_program *program,
				      struct task_struct *task, u64 now)
{
	struct thread *thread = find_thread(program, task);

	if (!thread) {
		thread = new_thread(program, task, unseen_since(task, now),
				    THREAD_RUNNABLE, DRAFT_AT_SWITCH);
		if (!thread)
			return;
	}
	/* It must have left unseen. Nobody had to wake it that we know of. */
	if (clock_state(thread->clock) == THREAD_RUNNING)
		depart_belatedly(task, thread, 0, now);
	arrive(program, task, thread, now);
}

#endif
