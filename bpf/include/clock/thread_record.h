/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Record of a thread, from the time at which a program first sees the thread until the
 * thread ends. It holds the clock of clock/thread_clock.h.
 */
#ifndef SYSTEMSCOPE_THREAD_RECORD_H
#define SYSTEMSCOPE_THREAD_RECORD_H

#include "clock/lane.h"
#include "clock/moves.h"
#include "events.h"
#include "targets/filter.h"
#include "window.h"

enum thread_state {
	THREAD_RUNNING,
	THREAD_RUNNABLE,
	THREAD_BLOCKED,
};

/* Reason for the end of a wait: see clock/work.h. */
enum wait_end {
	WAIT_END_UNKNOWN,
	/* An interrupt of a timer, a device or the network ended the wait. */
	WAIT_END_INTERRUPT,
	/* A thread that had work to do for this thread ended the wait. */
	WAIT_END_ANSWER,
	/* A thread that had no work to do for this thread ended the wait. */
	WAIT_END_NEW_WORK,
	/* The thread was blocked for the whole measurement. */
	WAIT_END_NONE,
	/*
	 * Up to WAIT_END_REAL_TIME: the thread was not blocked but throttled, see
	 * waits/limits.h.
	 */
	WAIT_END_QUOTA,
	WAIT_END_DEADLINE_BUDGET,
	WAIT_END_DEADLINE_PERIOD,
	WAIT_END_REAL_TIME,
	/* A signal had stopped the thread. */
	WAIT_END_STOPPED,
	/* The thread was frozen. */
	WAIT_END_FROZEN,
};

USER_SPACE_KNOWS(enum, wait_end);

/* Returns whether a limit on the thread's CPU time caused the wait. */
static __always_inline bool is_limit(u32 end)
{
	return end >= WAIT_END_QUOTA && end <= WAIT_END_REAL_TIME;
}

#define MAX_CLIENTS 8

/* Clients for which a thread works. */
struct work {
	/*
	 * Addresses of tasks, with flags in the lowest bits. The first half holds the
	 * last client, followed by the clients for which that client worked at that
	 * time. The second half holds earlier clients.
	 */
	u64 clients[MAX_CLIENTS];
	/* Last waker that woke the thread before the thread was off its CPU. */
	u64 early_client;
	/*
	 * Certainty of the work's origin: the number of waits in a row that only
	 * interrupts ended.
	 */
	u32 certainty;
	/* enum wait_end of the last wait. */
	u32 end;
};

#define CERTAIN 8
/* Initial certainty: if an interrupt ends the first wait, the origin is certain. */
#define CERTAIN_SOON 7

/* Common part of a thread's record, with which each program's own record begins. */
struct thread {
	/*
	 * The state and its start in ns: since << 2 | state. It is one word, so that a
	 * waker on another CPU reads both parts of one update.
	 */
	u64 clock;
	/* Time at which the thread last left a CPU, in ns of CLOCK_MONOTONIC. */
	u64 off_since;
	/* Blocked time since off_since, in ns; set when a waker wakes the thread. */
	u64 off_blocked;
	/* ID of the user stack with which the thread left, or stack_to_read(). */
	u64 user;
	/* Nanoseconds in each state. */
	u64 running;
	u64 runnable;
	u64 blocked;
	u64 started;
	u64 instance;
	/* switch_count() when the clock started. */
	u64 switches;
	/* time_run() when the thread last got or left a CPU. */
	u64 ran_before;
	/* IDs in the caller's PID namespace. */
	u32 pid;
	u32 tid;
	/*
	 * The kernel's task state with which the thread left; 0 if it was still
	 * runnable.
	 */
	u32 off_state;
	/* 1 if a waker woke the thread while the thread was still on its way to sleep. */
	u32 woken_early;
	u32 voluntary;
	u32 involuntary;
	/* Holder of the lock for which the thread left, see lock_holder(). */
	u32 lock_holder;
	u32 unused;
	/* Class of the object on which the thread waits, see lock_class(). */
	u64 lock_class;
	struct work work;
	u8 comm[COMM_LENGTH];
	/* All 0 without a timeline. */
	struct lane lane;
};

/* Account of a thread that ended. Its clock stopped at @ended. */
struct thread_end {
	u32 kind;
	u32 unused;
	u64 ended;
	struct thread thread;
};

USER_SPACE_KNOWS(struct, thread_end);

/*
 * Contexts in which programs make records. Each context has a draft of its own, because
 * a program can interrupt programs in the contexts below its own.
 */
enum draft_kind {
	/* Interrupts are off here. */
	DRAFT_AT_SWITCH,
	DRAFT_AT_EXEC,
	DRAFT_IN_ITERATOR,
	DRAFT_KINDS,
};

/*
 * Records of threads, and handlers of their events. Each program with a clock has one
 * constant of this type and passes it to the functions of the clock. The compiler turns
 * it into direct calls and references, so it does not exist at run time.
 */
struct clock_program {
	/*
	 * @threads: map of records by task address. A thread that replaces its leader
	 * in exec changes its ID, but not this address. @drafts: map with one draft for
	 * each draft_kind.
	 */
	void *threads;
	void *drafts;
	u32 record_size;
	/* Called when the current thread is about to leave its CPU. */
	void (*left_cpu)(void *ctx, struct task_struct *task,
			 struct thread *thread);
	/* Called when the thread's blocked time ends at @now; the waker may be current. */
	void (*woken)(void *ctx, struct task_struct *task,
		      struct thread *thread, u64 now);
	/*
	 * Called when the thread is about to be back on a CPU, after @blocked and then
	 * @runnable ns.
	 */
	void (*off_cpu)(struct task_struct *task, struct thread *thread,
			u64 blocked, u64 runnable);
	/*
	 * Sends a part of the thread's lane, whose off-CPU interval is not counted.
	 * NULL in programs without a timeline.
	 */
	int (*send_part)(const struct thread *thread,
			 const struct lane_part *part);
};

enum thread_kind {
	ALL_THREADS,
	USER_THREADS,
	KERNEL_THREADS,
};

const volatile enum thread_kind thread_kind = ALL_THREADS;
/* True if all threads have clocks, and not only the chosen threads. */
const volatile bool measure_everything = false;

/* The low bits of a clock hold the state, the other bits its start. */
#define CLOCK_STATE_BITS 2

static __always_inline u64 clock_at(u64 since, enum thread_state state)
{
	return since << CLOCK_STATE_BITS | state;
}

static __always_inline u64 clock_since(u64 clock)
{
	return clock >> CLOCK_STATE_BITS;
}

static __always_inline enum thread_state clock_state(u64 clock)
{
	return clock & ((1 << CLOCK_STATE_BITS) - 1);
}

/* Returns whether the command line asks for this thread. */
static __always_inline bool is_chosen(struct task_struct *task)
{
	u32 tid = task->pid;

	if (!tid || !is_target(task, task->tgid, tid))
		return false;
	if (thread_kind == ALL_THREADS)
		return true;
	return is_kernel_thread(task) == (thread_kind == KERNEL_THREADS);
}

static __always_inline bool is_measured(struct task_struct *task)
{
	return measure_everything ? task->pid : is_chosen(task);
}

static __always_inline struct thread *
find_thread(const struct clock_program *program, struct task_struct *task)
{
	u64 key = (u64)task;

	return bpf_map_lookup_elem(program->threads, &key);
}

/* Set once find_preexisting has given a clock to every existing thread. */
volatile bool preexisting_are_known = false;

/*
 * Returns the time since which a thread without a record has been in its state: the
 * time of its move, else the window's start. Returns @now if the programs missed the
 * thread's birth or first event.
 */
static __always_inline u64 unseen_since(struct task_struct *task, u64 now)
{
	u64 moved = moved_by(task, now);

	if (moved < now || preexisting_are_known || lost.clocks)
		return moved;
	return window_start;
}

/*
 * Returns the ID of the user stack that user space must read: the stack of @task at
 * @since, when its clock started. A task that joins the targets again gets another ID.
 */
static __always_inline u64 stack_to_read(struct task_struct *task, u64 since)
{
	if (has_no_user_stack(task))
		return STACK_NONE;
	if (!by_membership || since == window_start)
		return (u64)task;
	return hash_word(since, BPF_CORE_READ(task, pid)) |
	       STACK_OF_PREEXISTING;
}

static __always_inline void set_ids(struct task_struct *task,
				    struct thread *thread)
{
	thread->pid = namespace_pid(task);
	thread->instance = is_kernel_thread(task) ? 0 : process_instance(task);
	thread->lane.is_wanted = want_timeline &&
				 (!measure_everything || is_chosen(task));
}

/*
 * Makes a record of @task, which is in @state since @since, or finds the record that
 * another CPU made first. Returns NULL if the window was over at @since, the map is
 * full, or the task is not in the caller's PID namespace. The function is out of line
 * because calls are rare.
 */
static __noinline struct thread *new_thread(const struct clock_program *program,
					    struct task_struct *task, u64 since,
					    enum thread_state state,
					    enum draft_kind kind)
{
	u64 key = (u64)task;
	struct thread *thread, *found;
	u32 index = kind;

	thread = bpf_map_lookup_elem(program->drafts, &index);
	if (!thread || window_is_over(since))
		return NULL;
	__builtin_memset(thread, 0, program->record_size);
	thread->tid = namespace_tid(task);
	if (!thread->tid)
		return NULL;
	thread->clock = clock_at(since, state);
	thread->off_since = since;
	thread->user = stack_to_read(task, since);
	thread->started = since;
	thread->switches = switch_count(task);
	thread->ran_before = time_run(task);
	thread->work.certainty = CERTAIN_SOON;
	thread->lane.since = since;
	set_ids(task, thread);
	if (state == THREAD_RUNNING)
		thread->ran_before -= bpf_ktime_get_ns() - since;
	if (state == THREAD_BLOCKED)
		thread->off_state = task_state(task);
	BPF_CORE_READ_STR_INTO(&thread->comm, task, comm);

	bpf_map_update_elem(program->threads, &key, thread, BPF_NOEXIST);
	found = bpf_map_lookup_elem(program->threads, &key);
	if (!found)
		__sync_fetch_and_add(&lost.clocks, 1);
	return found;
}

/* True if user space wants the account of a thread that ended. */
const volatile bool want_thread_ends = true;

static __always_inline void report_end(const struct clock_program *program,
				       struct task_struct *task,
				       struct thread *thread, u64 now)
{
	struct thread_end *end;
	u64 key = (u64)task;

	BPF_CORE_READ_STR_INTO(&thread->comm, task, comm);
	end = may_send(task->tgid, sizeof(*end)) ?
		      bpf_ringbuf_reserve(&events, sizeof(*end), 0) :
		      NULL;
	if (!end) {
		__sync_fetch_and_add(&lost.thread_ends, 1);
		bpf_map_delete_elem(program->threads, &key);
		return;
	}
	end->kind = EVENT_THREAD_END;
	end->ended = now;
	__builtin_memcpy(&end->thread, thread, sizeof(*thread));
	/*
	 * The side that deletes the record reports the thread. User space deletes the
	 * records of threads that departed.
	 */
	if (bpf_map_delete_elem(program->threads, &key) && by_membership)
		bpf_ringbuf_discard(end, BPF_RB_NO_WAKEUP);
	else
		bpf_ringbuf_submit(end, can_wait());
}

static __always_inline void end_thread(const struct clock_program *program,
				       struct task_struct *task,
				       struct thread *thread, u64 now)
{
	u64 key = (u64)task;

	if (want_thread_ends)
		report_end(program, task, thread, now);
	else
		bpf_map_delete_elem(program->threads, &key);
}

#endif
