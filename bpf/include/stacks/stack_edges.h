/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Edges of the window. When the window opens, an iterator starts the clocks of threads
 * without events. When the window closes, an iterator reads the stacks on which threads
 * still wait.
 */
#ifndef SYSTEMSCOPE_STACK_EDGES_H
#define SYSTEMSCOPE_STACK_EDGES_H

#include "clock/clock_edges.h"
#include "clock/intervals.h"
#include "stacks/named_threads.h"
#include "stacks/stack_capture.h"
#include "waits/limits.h"
#include "waits/objects.h"

/* Message about a thread that existed before the window, or that joined the targets. */
struct preexisting_thread {
	/* The task's address is also the ID of the stack to read, see stack_to_read(). */
	struct stack_owner owner;
	/* switch_count(), at the start of the thread's clock if the clock has started. */
	u64 switches;
	u32 leaf_is_exact;
	u32 is_running;
	u32 is_32_bit;
	u32 unused;
	/* ID under which user space stores the stack; 0 for the task's address. */
	u64 stack;
	/* Registers of the user stack; all 0 if there is none. */
	struct user_registers registers;
	struct replaced_return replaced_returns[MAX_REPLACED_RETURNS];
};

USER_SPACE_KNOWS(struct, preexisting_thread);

static __always_inline void
describe_user_stack(struct preexisting_thread *found, struct task_struct *task)
{
	struct pt_regs *regs;

	describe_owner(&found->owner, task);
	found->is_running = task->on_cpu;
	if (is_kernel_thread(task))
		return;
	regs = user_regs(task);
	found->leaf_is_exact =
		!entered_by_syscall(BPF_CORE_READ(regs, REGS_SYSTEM_CALL)) ||
		regs_are_of_new_program(regs);
	found->is_32_bit = is_32_bit(BPF_CORE_READ(regs, REGS_MODE));
	read_registers(&found->registers, regs);
	describe_replaced_returns(found->replaced_returns, task);
}

/*
 * Writes a thread, and starts its clock if the window has begun. The iterator first
 * runs shortly before the window, and user space then reads the stacks of the threads
 * off the CPU. The iterator runs again right after the window's start, for every thread
 * without a clock. After that it runs whenever a process has moved, for the threads
 * that joined.
 */
static __always_inline int
write_preexisting(const struct clock_program *program,
		  struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct preexisting_thread found = {};
	struct thread *thread;
	u64 now;

	if (!task || !is_measured(task) || task->exit_state)
		return 0;
	found.switches = switch_count(task);
	now = window_now();
	if (now) {
		thread = find_thread(program, task);
		if (thread && preexisting_are_known)
			return 0;
		if (!thread) {
			thread = start_clock(program, task, now);
			if (!thread)
				return 0;
			if (want_objects &&
			    clock_state(thread->clock) == THREAD_RUNNABLE)
				thread->work.end = find_limit(task);
		}
		found.switches = thread->switches;
	}

	describe_user_stack(&found, task);
	bpf_seq_write(ctx->meta->seq, &found, sizeof(found));
	return 0;
}

/* Data of an off-CPU interval that is still open at the window's end. */
struct open_interval {
	/*
	 * Start of the interval. The data is valid only if the record has the same
	 * start when it is closed.
	 */
	u64 off_since;
	u64 kernel;
	/* Resource that the thread waits on: an ID of waits/objects.h. */
	u64 object;
	/* The kernel's task state at the window's end. */
	u32 task_state;
	/* 1 if the command line asks for the thread. */
	u32 is_chosen;
};

/* Common part of a thread's record in programs that count by stack. */
struct stack_thread {
	struct thread thread;
	/* All zero until the window's end. */
	struct open_interval open;
};

/* Key and weight of an interval that is closed without an event of its thread. */
struct closed_interval {
	struct stack_key key;
	struct tally weight;
};

USER_SPACE_KNOWS(struct, closed_interval);

/* Returns the end of the wait that is open when @thread's record is closed. */
static __always_inline enum wait_end end_of_open(const struct thread *thread,
						 u32 task_state)
{
	u32 end = thread->work.end;

	if (task_state & TASK_STOPPED)
		return WAIT_END_STOPPED;
	if (task_state & TASK_FROZEN)
		return WAIT_END_FROZEN;
	if (!(thread->running + thread->runnable))
		return WAIT_END_NONE;
	return is_limit(end) ? end : WAIT_END_UNKNOWN;
}

/*
 * Closes the record of a thread at @end, once no other program changes the record.
 * Returns whether this ends an off-CPU interval that counts, and sets @closed if so.
 * @open: data of the open interval, which is used only if it belongs to the interval
 * that ends here.
 */
static __always_inline bool close_record(const struct clock_program *program,
					 struct thread *thread,
					 const struct open_interval *open,
					 u64 end, weigh_interval *weigh,
					 struct closed_interval *closed)
{
	bool is_running = clock_state(thread->clock) == THREAD_RUNNING;
	bool is_chosen = !measure_everything, was_woken = thread->woken_early;
	u64 kernel = STACK_MISSED, object = NO_OBJECT, off;
	struct weighed weighed = {};
	u32 task_state = 0;

	if (open->off_since == thread->off_since) {
		/* The kernel's task state shows whether the thread sleeps. */
		was_woken = !open->task_state ||
			    open->task_state == TASK_WAKING;
		is_chosen = open->is_chosen;
		task_state = open->task_state;
		kernel = open->kernel;
		object = open->object;
	}
	end = close_any_interval(program, thread, was_woken, end);
	thread->clock = clock_at(end, clock_state(thread->clock));
	off = end - thread->off_since;
	if (!is_running)
		add_off_cpu(program, thread, thread->off_blocked,
			    off - thread->off_blocked);
	if (is_running || !off || !is_chosen ||
	    !weigh(thread, thread->off_blocked, off - thread->off_blocked, true,
		   &weighed)) {
		end_lane(program, thread);
		return false;
	}
	closed->key = (struct stack_key){
		.pid = thread->pid,
		.tid = counts_each_thread(thread->pid) ? thread->tid : 0,
		.user = want_user_stacks ? thread->user : STACK_NONE,
		.kernel = want_kernel_stacks ? kernel : STACK_NONE,
		.waker = weighed.waker,
		.object = object,
		.wait_end = end_of_open(thread, task_state),
		.period = weighed.period,
	};
	if (closed->key.user == STACK_AT_RETURN)
		closed->key.user = STACK_MISSED;
	__builtin_memcpy(closed->key.comm, thread->comm, COMM_LENGTH);
	closed->weight = weighed.weight;
	send_counted(thread, &closed->key);
	end_lane(program, thread);
	return true;
}

/*
 * Corrects the record of a thread whose switch-out the kernel did not show. The thread
 * is off its CPU, but by its record it has run since before the window's end.
 */
static __always_inline void
settle_unseen_departure(const struct clock_program *program,
			struct task_struct *task, struct thread *thread)
{
	u64 clock = *(volatile u64 *)&thread->clock;

	if (clock_state(clock) != THREAD_RUNNING ||
	    window_is_over(clock_since(clock)) || task->on_cpu)
		return;
	/*
	 * A changed clock means that the thread is just leaving its CPU, and its own
	 * event is changing the record.
	 */
	if (*(volatile u64 *)&thread->clock == clock)
		depart_belatedly(program, task, thread, task_state(task),
				 window_now());
}

/* Reads the stack of a thread that is still off the CPU, right after the window's end. */
static __always_inline int
read_open_interval(const struct clock_program *program,
		   struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct open_interval open = {};
	struct thread *thread;

	if (!task || !is_measured(task))
		return 0;
	thread = find_thread(program, task);
	if (!thread)
		return 0;
	BPF_CORE_READ_STR_INTO(&thread->comm, task, comm);
	settle_unseen_departure(program, task, thread);

	open.off_since = *(volatile u64 *)&thread->off_since;
	if (!is_off_cpu(thread, open.off_since) ||
	    window_is_over(open.off_since))
		return 0;
	open.kernel = capture_saved_kernel_stack(task, SCRATCH_ITERATOR);
	open.object = capture_object(task, thread, SCRATCH_ITERATOR);
	open.task_state = task_state(task);
	open.is_chosen = is_chosen(task);
	/* If the thread ran meanwhile, the stack may be from another place. */
	if (!is_off_cpu(thread, open.off_since))
		return 0;
	((struct stack_thread *)thread)->open = open;
	return 0;
}

/* The interval that close_thread() closed last. */
struct closed_interval closed = {};

/*
 * Closes the record of a thread at the window's end. User space runs this for each
 * record once no other program runs. The first argument is the task's address. Returns
 * whether this ended an interval that counts, and stores that interval in @closed.
 */
static __always_inline int close_thread(const struct clock_program *program,
					weigh_interval *weigh,
					const u64 *arguments)
{
	u64 task = arguments[0];
	struct stack_thread *record;

	record = bpf_map_lookup_elem(program->threads, &task);
	if (!record)
		return false;
	return close_record(program, &record->thread, &record->open,
			    window_stop, weigh, &closed);
}

/*
 * Writes a thread whose user stack no program has captured, because the thread has not
 * returned to a CPU. User space runs the iterator after read_open_intervals, and reads
 * the stack under a separate ID.
 */
static __always_inline int write_unreturned(const struct clock_program *program,
					    struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct preexisting_thread found = {};
	struct thread *thread;

	if (!task || !is_measured(task))
		return 0;
	thread = find_thread(program, task);
	if (!thread || thread->user != STACK_AT_RETURN)
		return 0;
	if (has_no_user_stack(task)) {
		thread->user = STACK_NONE;
		return 0;
	}
	describe_user_stack(&found, task);
	if (found.is_running)
		return 0;
	found.stack =
		hash_word(*(volatile u64 *)&thread->off_since, thread->tid) |
		STACK_OF_PREEXISTING;
	thread->user = found.stack;
	bpf_seq_write(ctx->meta->seq, &found, sizeof(found));
	return 0;
}

/* Message about a thread that was measured and no longer is. */
struct departure {
	u64 task;
	u64 left;
	/*
	 * 1 if the departure ended an off-CPU interval that counts. @interval then has
	 * it.
	 */
	u64 has_interval;
	struct closed_interval interval;
};

USER_SPACE_KNOWS(struct, departure);

/* Returns whether @task has not run since it last left a CPU by its record. */
static __always_inline bool has_stayed_off_cpu(struct task_struct *task,
					       struct thread *thread)
{
	return !task->on_cpu && time_run(task) == thread->ran_before;
}

/*
 * Closes and writes the record of a thread that a move made depart. User space runs the
 * iterator whenever a process has moved.
 */
static __always_inline int write_departure(const struct clock_program *program,
					   weigh_interval *weigh,
					   struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct open_interval open = { .kernel = STACK_MISSED };
	struct departure departure = {};
	struct thread *thread;
	u64 now = window_now();

	if (!task || !now)
		return 0;
	thread = find_departed_thread(program, task);
	if (!thread)
		return 0;
	BPF_CORE_READ_STR_INTO(&thread->comm, task, comm);
	departure.task = (u64)task;
	departure.left = moved_by(task, now);
	open.off_since = thread->off_since;
	/* A wake-up that the record does not have came after the departure. */
	open.task_state = thread->off_state;
	open.is_chosen = true;
	if (has_stayed_off_cpu(task, thread)) {
		open.kernel =
			capture_saved_kernel_stack(task, SCRATCH_ITERATOR);
		open.object = capture_object(task, thread, SCRATCH_ITERATOR);
		if (!has_stayed_off_cpu(task, thread)) {
			open.kernel = STACK_MISSED;
			open.object = NO_OBJECT;
		}
	}
	departure.has_interval = close_record(program, thread, &open,
					      departure.left, weigh,
					      &departure.interval);
	departure.left = clock_since(thread->clock);
	bpf_seq_write(ctx->meta->seq, &departure, sizeof(departure));
	return 0;
}

#endif
