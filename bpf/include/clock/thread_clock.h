/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The thread clock. At every instant a thread is running, runnable (waiting for a CPU)
 * or blocked. One record per thread holds its state, the start of that state, and the
 * nanoseconds spent in each state. Every scheduler event closes an interval and opens
 * the next interval. The three sums therefore add up to the thread's life in the
 * window.
 *
 * The first event of a thread that existed before the window makes its record, unless
 * find_preexisting (clock_edges.h) was first. Until its first event the thread stays in
 * the state that it had when the window began.
 *
 * Each program's struct clock_program says how the program uses an interval.
 */
#ifndef SYSTEMSCOPE_THREAD_CLOCK_H
#define SYSTEMSCOPE_THREAD_CLOCK_H

#include "clock/lanes.h"

/*
 * Adds the open interval to the sum of @state. Returns the interval's end, at which the
 * next interval begins: @now, or the interval's start if that is later. It is later if
 * another CPU began the interval after this CPU read the time.
 */
static __always_inline u64 close_interval(const struct clock_program *program,
					  struct thread *thread,
					  enum thread_state state, u64 now)
{
	u64 since = clock_since(*(volatile u64 *)&thread->clock);

	if (now < since)
		now = since;
	if (state == THREAD_RUNNING) {
		thread->running += now - since;
		add_running(program, thread, now - since);
	} else if (state == THREAD_RUNNABLE) {
		thread->runnable += now - since;
	} else {
		thread->blocked += now - since;
	}
	return now;
}

/*
 * Closes the open interval in the thread's own state. @was_woken: true if the waker's
 * event came between the thread's decision to sleep and its switch. If the record says
 * blocked, all of the time was then a wait for a CPU.
 */
static __always_inline u64
close_any_interval(const struct clock_program *program, struct thread *thread,
		   bool was_woken, u64 now)
{
	enum thread_state state = clock_state(thread->clock);

	if (state == THREAD_BLOCKED && was_woken)
		state = THREAD_RUNNABLE;
	now = close_interval(program, thread, state, now);
	if (state == THREAD_BLOCKED)
		thread->off_blocked = now - thread->off_since;
	return now;
}

/* Ends the off-CPU interval of a thread that got a CPU. */
static __always_inline void arrive(const struct clock_program *program,
				   struct task_struct *task,
				   struct thread *thread, u64 now)
{
	enum thread_state state = clock_state(thread->clock);
	u64 off;

	now = close_any_interval(program, thread, thread->woken_early, now);
	off = now - thread->off_since;
	if (state != THREAD_RUNNING && off) {
		add_off_cpu(program, thread, thread->off_blocked,
			    off - thread->off_blocked);
		program->off_cpu(task, thread, thread->off_blocked,
				 off - thread->off_blocked);
		settle_pending(program, thread);
	}
	thread->woken_early = 0;
	thread->ran_before = time_run(task);
	thread->clock = clock_at(now, THREAD_RUNNING);
}

/*
 * Ends the off-CPU interval of the current thread, whose switch-in the kernel did not
 * show. The scheduler's account tells how long ago the switch-in was.
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

/*
 * Returns the time of a switch-out that the kernel did not show: the thread is off the
 * CPU, and its record still says that it runs.
 */
static __always_inline u64 unseen_departure(struct task_struct *task,
					    struct thread *thread, u64 now)
{
	u64 since = clock_since(thread->clock);
	u64 ran = time_run(task) - thread->ran_before;

	return now > since && ran < now - since ? since + ran : now;
}

/*
 * Records a switch-out that the kernel did not show. @state: the kernel's task state
 * with which the thread left. The scheduler's account tells the time, and nothing tells
 * the user stack.
 */
static __always_inline void
depart_belatedly(const struct clock_program *program, struct task_struct *task,
		 struct thread *thread, u32 state, u64 now)
{
	now = unseen_departure(task, thread, now);
	if (!window_is_over(now))
		__sync_fetch_and_add(&lost.switches, 1);
	now = close_interval(program, thread, THREAD_RUNNING, now);
	thread->off_since = now;
	thread->off_blocked = 0;
	thread->off_state = state;
	thread->ran_before = time_run(task);
	thread->user = has_no_user_stack(task) ? STACK_NONE : STACK_MISSED;
	thread->lock_holder = 0;
	thread->lock_class = 0;
	thread->work.end = WAIT_END_UNKNOWN;
	*(volatile u64 *)&thread->clock =
		clock_at(now, state ? THREAD_BLOCKED : THREAD_RUNNABLE);
}

/*
 * Ends the record of a thread that is no longer measured, at the time of its move if it
 * moved.
 */
static __always_inline void leave(const struct clock_program *program,
				  struct task_struct *task,
				  struct thread *thread, u64 now)
{
	bool is_running = clock_state(thread->clock) == THREAD_RUNNING;

	now = close_any_interval(program, thread, false, moved_by(task, now));
	if (!is_running)
		add_off_cpu(program, thread, thread->off_blocked,
			    now - thread->off_since - thread->off_blocked);
	end_lane(program, thread);
	end_thread(program, task, thread, now);
}

/*
 * Handles the exit of @task, which is not measured: it moved to another cgroup, or its
 * ID is already gone. If moves can end a measurement, ends the record and returns true.
 * Returns false otherwise, since @task then lacks only its ID.
 */
static __always_inline bool end_if_departed(const struct clock_program *program,
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
 * Returns the record of @task if @task was measured and no longer is. A thread that is
 * exiting ends its record itself.
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
	now = close_interval(program, thread, THREAD_RUNNING, now);

	if (voluntary && (state & TASK_DEAD)) {
		end_lane(program, thread);
		end_thread(program, task, thread, now);
		return;
	}
	/* __schedule() counts its switches the same way. */
	if (!window_is_over(now)) {
		if (voluntary)
			thread->voluntary++;
		else
			thread->involuntary++;
	}
	/*
	 * If a signal is pending, __schedule() makes the task runnable again. Some
	 * kernels still report the state in which the task wanted to sleep.
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
	/*
	 * The kernel did not show the switch-out. No waker is known, so the thread
	 * counts as runnable.
	 */
	if (clock_state(thread->clock) == THREAD_RUNNING)
		depart_belatedly(program, task, thread, 0, now);
	arrive(program, task, thread, now);
}

#endif
