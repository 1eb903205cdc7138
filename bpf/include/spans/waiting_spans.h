/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Spans off the CPU, from the thread clock. A program counts a span when its thread is
 * back. If a period ended in the span, user space counts the part before that end. It
 * does the same for threads that are still off the CPU.
 */
#ifndef SYSTEMSCOPE_WAITING_SPANS_H
#define SYSTEMSCOPE_WAITING_SPANS_H

#include "clock/clock_edges.h"
#include "spans/span_intervals.h"

/* A thread that was off the CPU when a period ended. */
struct waiting {
	u64 task;
	/* End of the period. */
	u64 end;
	u64 off_since;
	/* Time at which a waker woke the thread; 0 if none did. */
	u64 woken;
	u32 owner;
	u32 unused;
};

/*
 * Threads that were off the CPU at a period's end and came back before user space
 * looked for them, by task.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, struct waiting);
} returned SEC(".maps");

static __always_inline u32 clock_owner(struct thread *thread)
{
	return span_owner == OWNER_PROCESS ? thread->pid : thread->tid;
}

static __noinline int note_return(u64 task, struct thread *thread, u64 end)
{
	struct waiting waiting = {
		.task = task,
		.end = end,
		.off_since = thread->off_since,
		.woken = thread->off_since + thread->off_blocked,
		.owner = clock_owner(thread),
	};

	if (bpf_map_update_elem(&returned, &task, &waiting, BPF_ANY))
		__sync_fetch_and_add(&lost.counts, 1);
	return 0;
}

/*
 * Counts the span of @task, which was blocked for @blocked ns and then runnable for
 * @runnable ns.
 */
static __always_inline void count_wait(struct task_struct *task,
				       struct thread *thread, u64 blocked,
				       u64 runnable)
{
	u64 since = thread->off_since, woken = since + blocked;
	u64 until = woken + runnable;
	u64 word = current_interval();
	u64 start = interval_start, end = interval_end(word);
	u32 slot = interval_slot(word);

	if (until > end) {
		if (since < end)
			note_return((u64)task, thread, end);
		start = end;
		slot = !slot;
	}
	if (span_kind == SPANS_BLOCKED)
		until = woken;
	else if (span_kind == SPANS_RUNNABLE)
		since = woken;
	if (since < start)
		since = start;
	if (since < until)
		count_span(slot, clock_owner(thread), until - since);
}

/*
 * Starts the clock of a thread without one. User space runs the iterator right after
 * the window's start, and whenever a process has moved.
 */
static __always_inline int
start_missing_clock(const struct clock_program *program,
		    struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u64 now = window_now();

	if (task && now && is_measured(task) && !task->exit_state &&
	    !find_thread(program, task))
		start_clock(program, task, now);
	return 0;
}

/*
 * Writes a thread that is still off the CPU. User space runs the iterator right after a
 * period's end.
 */
static __always_inline int write_waiting(const struct clock_program *program,
					 struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct waiting waiting = {};
	struct thread *thread;
	u32 state;
	u64 clock;

	if (!task || !is_measured(task))
		return 0;
	thread = find_thread(program, task);
	if (!thread)
		return 0;
	/*
	 * sched_waking comes before the kernel changes the state. If the state says
	 * awake and the clock does not, the waker came before the switch-out. The
	 * waker's note in the record cannot tell this, because it may belong to a sleep
	 * that never happened.
	 */
	state = task_state(task);
	barrier();
	clock = *(volatile u64 *)&thread->clock;
	waiting.task = (u64)task;
	waiting.end = interval_end(current_interval());
	waiting.off_since = *(volatile u64 *)&thread->off_since;
	if (clock_state(clock) != THREAD_BLOCKED || !state ||
	    state == TASK_WAKING)
		waiting.woken = waiting.off_since +
				*(volatile u64 *)&thread->off_blocked;
	waiting.owner = clock_owner(thread);
	/* The map @returned has a thread that has come back meanwhile. */
	if (waiting.off_since < waiting.end &&
	    is_off_cpu(thread, waiting.off_since))
		bpf_seq_write(ctx->meta->seq, &waiting, sizeof(waiting));
	return 0;
}

/*
 * Writes a thread that a move made depart. User space runs the iterator whenever a
 * process has moved. The open span ends at the move, as at a period's end.
 */
static __always_inline int
write_departed_wait(const struct clock_program *program,
		    struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct waiting waiting = {};
	struct thread *thread;
	u64 now = window_now();

	if (!task || !now)
		return 0;
	thread = find_departed_thread(program, task);
	if (!thread)
		return 0;
	waiting.task = (u64)task;
	waiting.end = moved_by(task, now);
	waiting.off_since = thread->off_since;
	waiting.owner = clock_owner(thread);
	if (clock_state(thread->clock) == THREAD_RUNNABLE)
		waiting.woken = waiting.off_since + thread->off_blocked;
	else if (clock_state(thread->clock) == THREAD_RUNNING)
		waiting.off_since = waiting.end;
	bpf_seq_write(ctx->meta->seq, &waiting, sizeof(waiting));
	return 0;
}

#endif
