/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Tracks for which clients a thread works, to tell how a wait ended. A waker gives work
 * to the thread that it wakes, for itself and for all its own clients. If the thread
 * later wakes one of these clients, the wake-up is an answer for which the client has
 * waited. A waker that owes no answer gives new work.
 *
 * If two threads have taken turns since before the window, the programs cannot tell
 * which thread asks and which thread answers. Only threads whose work has a certain
 * origin therefore count: threads born in the window, threads that only interrupts
 * wake, and threads to which such threads gave work.
 */
#ifndef SYSTEMSCOPE_WORK_H
#define SYSTEMSCOPE_WORK_H

#include "clock/thread_clock.h"
#include "context.h"
#include "waits/futex_calls.h"

/* True if the command line asks how waits ended. */
const volatile bool want_wait_ends = false;

/* Flag of a client: its origin is certain. The lowest bits of a task's address are 0. */
#define IS_CERTAIN 1ULL
/* Flag of a client: a thread has answered it since it last asked. */
#define IS_ANSWERED 2ULL
#define CLIENT_FLAGS (IS_CERTAIN | IS_ANSWERED)

/* include/linux/sched.h */
#define TASK_INTERRUPTIBLE 1
#define TASK_TRACED 8

static __always_inline bool is_certain(const struct work *work)
{
	return work->certainty >= CERTAIN;
}

/* Returns the current task, whose record is @thread, as a client. */
static __always_inline u64 current_client(const struct thread *thread)
{
	return bpf_get_current_task() |
	       (is_certain(&thread->work) ? IS_CERTAIN : 0);
}

/*
 * Makes @client the last client of @work, followed by the clients of @client_work, the
 * work of @client itself.
 */
static __always_inline void work_for(struct work *work, u64 client,
				     const struct work *client_work)
{
	if ((work->clients[0] | CLIENT_FLAGS) != (client | CLIENT_FLAGS)) {
		for (u32 i = MAX_CLIENTS - 1; i > MAX_CLIENTS / 2; i--)
			work->clients[i] = work->clients[i - 1];
		work->clients[MAX_CLIENTS / 2] = work->clients[0];
	}
	work->clients[0] = client;
	for (u32 i = 1; i < MAX_CLIENTS / 2; i++)
		work->clients[i] = client_work->clients[i - 1];
}

static __always_inline u64 answer_one(u64 *client, u64 task)
{
	u64 found = *client;

	if ((found & ~CLIENT_FLAGS) != task)
		return 0;
	*client |= IS_ANSWERED;
	return found;
}

/*
 * Marks @task as answered. Returns the client entry of @task in @work, 0 if there is
 * none.
 */
static __always_inline u64 answer(struct work *work, u64 task)
{
	u64 found = 0;

	for (u32 i = 0; i < MAX_CLIENTS; i++) {
		if (!found)
			found = answer_one(&work->clients[i], task);
	}
	return found ? found : answer_one(&work->early_client, task);
}

/* Notes the end of the wait of @task, which is off its CPU. The waker is current. */
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
	/*
	 * A tool stops its command before the first instruction, so no thread has given
	 * the command work before.
	 */
	if (thread->off_state & TASK_TRACED) {
		work->certainty = CERTAIN;
		return;
	}
	if (thread->off_state & TASK_STOPPED) {
		work->end = WAIT_END_STOPPED;
		return;
	}
	/*
	 * Since Linux 6.1 threads sleep while they are frozen. The waker has woken a
	 * frozen thread.
	 */
	if (task_state(task) & TASK_FROZEN) {
		work->end = WAIT_END_FROZEN;
		return;
	}
	/* Uninterruptible waits are for the kernel's own locks and for disks. */
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
	/* The programs have not seen requests from before the window. */
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
 * Notes the waker of @task, whose record is @thread. The CPU of @task has yet to write
 * the record. This function therefore writes only one word of it, and no word if the
 * wake-up is an answer.
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

/* Makes the current task the first client of @thread, which was just born. */
static __always_inline void set_to_work_by_birth(struct thread *thread)
{
	thread->work.clients[0] = bpf_get_current_task() | IS_CERTAIN;
	thread->work.certainty = CERTAIN;
}

#endif
