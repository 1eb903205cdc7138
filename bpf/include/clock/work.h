/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Who works for whom, and so what the end of a wait means. Who wakes a thread sets it
 * to work, for itself and for all for whom it works itself. When the thread wakes one of
 * these, that is an answer, and whom it wakes had waited for that. Whom nobody owes an
 * answer was given new work.
 *
 * Of two threads that take turns nobody can tell who asks and who answers, if that
 * began before the window. So only what threads do whose own work has a certain origin
 * tells something: that they were born in the window, or woken by interrupts alone, or
 * set to work by a thread of which that is so.
 */
#ifndef SYSTEMSCOPE_WORK_H
#define SYSTEMSCOPE_WORK_H

#include "clock/thread_clock.h"
#include "context.h"
#include "waits/futex_calls.h"

/* Whether it is asked how waits ended. */
const volatile bool want_wait_ends = false;

/* Of a task among the clients, as tasks have even addresses: its origin is certain. */
#define IS_CERTAIN 1ULL
/* It has had an answer since it last asked. */
#define IS_ANSWERED 2ULL
#define CLIENT_FLAGS (IS_CERTAIN | IS_ANSWERED)

/* include/linux/sched.h */
#define TASK_INTERRUPTIBLE 1
#define TASK_TRACED 8

static __always_inline bool is_certain(const struct work *work)
{
	return work->certainty >= CERTAIN;
}

/* The current task, whose record @thread is, as one for whom others work. */
static __always_inline u64 current_client(const struct thread *thread)
{
	return bpf_get_current_task() |
	       (is_certain(&thread->work) ? IS_CERTAIN : 0);
}

/* @work is for @client from now on, who works as @of says. */
static __always_inline void work_for(struct work *work, u64 client,
				     const struct work *of)
{
	if ((work->clients[0] | CLIENT_FLAGS) != (client | CLIENT_FLAGS)) {
		for (u32 i = MOST_CLIENTS - 1; i > MOST_CLIENTS / 2; i--)
			work->clients[i] = work->clients[i - 1];
		work->clients[MOST_CLIENTS / 2] = work->clients[0];
	}
	work->clients[0] = client;
	for (u32 i = 1; i < MOST_CLIENTS / 2; i++)
		work->clients[i] = of->clients[i - 1];
}

static __always_inline u64 answer_one(u64 *client, u64 task)
{
	u64 found = *client;

	if ((found & ~CLIENT_FLAGS) != task)
		return 0;
	*client |= IS_ANSWERED;
	return found;
}

/* Answers @task. Returns as whom @work knew it, 0 if as nobody. */
static __always_inline u64 answer(struct work *work, u64 task)
{
	u64 found = 0;

	for (u32 i = 0; i < MOST_CLIENTS; i++) {
		if (!found)
			found = answer_one(&work->clients[i], task);
	}
	return found ? found : answer_one(&work->early_client, task);
}

/* The wait of @task is over, which is off its CPU. Whoever ended it is current. */
static __always_inline void note_wait_end(const struct clock_program *program,
					  struct task_struct *task,
					  struct thread *thread)
{
	struct work *work = &thread->work;
	struct task_struct *current;
	struct thread *waker;
	enum context context;
	u64 known;

	if (!want_wait_ends)
		return;
	/* A command is held before its first instruction: nobody had asked it before. */
	if (thread->off_state & TASK_TRACED) {
		work->certainty = CERTAIN;
		return;
	}
	if (thread->off_state & TASK_STOPPED) {
		work->end = WAIT_END_STOPPED;
		return;
	}
	/* Since 6.1 threads are frozen where they sleep; this one was woken meanwhile. */
	if (task_state(task) & TASK_FROZEN) {
		work->end = WAIT_END_FROZEN;
		return;
	}
	/* What cannot be interrupted are the kernel's own locks, and disks. */
	context = current_context();
	if (!(thread->off_state & TASK_INTERRUPTIBLE) ||
	    context == CONTEXT_UNKNOWN)
		return;
	if (context != CONTEXT_TASK) {
		work->end = WAIT_END_INTERRUPT;
		if (!is_certain(work))
			work->certainty++;
		return;
	}
	current = current_task();
	waker = find_thread(program, current);
	if ((!waker && is_kernel_thread(current)) || waits_for_mutex(task))
		return;
	/* What it was asked before the window nobody saw. */
	if (!waker || thread->off_since == thread->started) {
		work->certainty = 0;
		return;
	}
	known = answer(&waker->work, (u64)task);
	if (known) {
		if (!(known & IS_CERTAIN))
			work->certainty = 0;
		else if (!(known & IS_ANSWERED))
			work->end = WAIT_END_ANSWER;
		return;
	}
	known = current_client(waker);
	work_for(work, known, &waker->work);
	work->certainty = known & IS_CERTAIN ? CERTAIN : 0;
	if (known & IS_CERTAIN)
		work->end = WAIT_END_NEW_WORK;
}

/*
 * @task, whose record @thread is, is woken while its CPU has yet to write that: one word
 * is all it gets, and none if it is answered.
 */
static __always_inline void
set_to_work_early(const struct clock_program *program, struct task_struct *task,
		  struct thread *thread)
{
	struct thread *waker;

	if (!want_wait_ends || current_context() != CONTEXT_TASK)
		return;
	waker = find_thread(program, current_task());
	if (waker && !answer(&waker->work, (u64)task))
		*(volatile u64 *)&thread->work.early_client =
			current_client(waker);
}

/* @thread is born to work for whoever is current. */
static __always_inline void set_to_work_by_birth(struct thread *thread)
{
	thread->work.clients[0] = bpf_get_current_task() | IS_CERTAIN;
	thread->work.certainty = CERTAIN;
}

#endif
