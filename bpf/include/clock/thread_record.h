/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What is kept of each thread: its record, from when a program first sees the
 * thread until it ends. The clock (clock/thread_clock.h) is kept in it.
 */
#ifndef SYSTEMSCOPE_THREAD_RECORD_H
#define SYSTEMSCOPE_THREAD_RECORD_H

#include "clock/moves.h"
#include "events.h"
#include "targets/filter.h"
#include "window.h"

enum thread_state {
	THREAD_RUNNING,
	THREAD_RUNNABLE,
	THREAD_BLOCKED,
};

/* How a wait ended, and what that tells of it: see clock/work.h. */
enum wait_end {
	WAIT_END_UNKNOWN,
	/* A timer's, a device's or the network's interrupt ended it. */
	WAIT_END_INTERRUPT,
	/* Somebody did whom the thread had set to work. */
	WAIT_END_ANSWER,
	/* Somebody did whom it had not. */
	WAIT_END_NEW_WORK,
	/* It was blocked as long as it was measured. */
	WAIT_END_NONE,
	/* It was not blocked: see waits/limits.h. */
	WAIT_END_QUOTA,
	WAIT_END_DEADLINE_BUDGET,
	WAIT_END_DEADLINE_PERIOD,
	WAIT_END_REAL_TIME,
	/* A signal had stopped it, whatever it did before. */
	WAIT_END_STOPPED,
	/* It was frozen, whatever it did before. */
	WAIT_END_FROZEN,
};

USER_SPACE_KNOWS(enum, wait_end);

/* Whether a wait ended so that was for a limit on what the thread may run. */
static __always_inline bool is_limit(u32 end)
{
	return end >= WAIT_END_QUOTA && end <= WAIT_END_REAL_TIME;
}

#define MOST_CLIENTS 8

/* For whom a thread works. */
struct work {
	/*
	 * Tasks by their addresses, with flags in the lowest bits: who set it to work
	 * last and for whom that one worked then, then who did before.
	 */
	u64 clients[MOST_CLIENTS];
	/* Who woke it last before it was off its CPU. */
	u64 early_client;
	/*
	 * How certain the origin of its work is: how many waits in a row interrupts
	 * alone have ended.
	 */
	u32 certainty;
	/* enum wait_end, of its last wait. */
	u32 end;
};

#define CERTAIN 8
/* Of whom nobody has woken yet the first wait tells. */
#define CERTAIN_SOON 7

/* A program may keep more of each thread: its record then begins with this. */
struct thread {
	/*
	 * The state, and since when in ns: since << 2 | state. One word, so
	 * that a waker on another CPU never sees one without the other.
	 */
	u64 clock;
	/* When it last left a CPU. */
	u64 off_since;
	/* How much of the time since then it was blocked, once woken. */
	u64 off_blocked;
	/* The user stack with which it left, or stack_to_read(). */
	u64 user;
	/* Nanoseconds in each state. */
	u64 running;
	u64 runnable;
	u64 blocked;
	u64 started;
	u64 instance;
	/* switch_count() when the clock started. */
	u64 switches;
	/* time_run() when it last got a CPU, or left one. */
	u64 ran_before;
	/* In the caller's PID namespace. */
	u32 pid;
	u32 tid;
	/* The kernel's task state with which it left; 0 if still runnable. */
	u32 off_state;
	/* A waker came while it was still on its way to sleep. */
	u32 woken_early;
	u32 voluntary;
	u32 involuntary;
	/* Who held the lock for which it left, see lock_holder(). */
	u32 lock_holder;
	u32 unused;
	struct work work;
	u8 comm[COMM_LENGTH];
};

/* A thread that ended. Its clock stopped at @ended. */
struct thread_end {
	u32 kind;
	u32 unused;
	u64 ended;
	struct thread thread;
};

USER_SPACE_KNOWS(struct, thread_end);

/* Where a record is made: what looks there may be interrupted by what is before it. */
enum draft_kind {
	/* Where no interrupt comes. */
	DRAFT_AT_SWITCH,
	DRAFT_AT_EXEC,
	DRAFT_IN_ITERATOR,
	DRAFT_KINDS,
};

/*
 * What a program keeps of threads, and what it does at their events. Each program on the
 * clock states one such list, which is constant, and hands it to the functions of the clock.
 * The compiler makes direct calls and references of it, and nothing of it remains when the
 * program runs.
 */
struct clock_program {
	/*
	 * Records by task, as a thread that replaces its leader in exec changes its ID; and a
	 * record for each draft_kind.
	 */
	void *threads;
	void *drafts;
	u32 record_size;
	/* The thread is about to leave its CPU, which it is current on. */
	void (*left_cpu)(void *ctx, struct task_struct *task,
			 struct thread *thread);
	/* The thread's blocked time is over at @now; its waker is current, or not. */
	void (*woken)(void *ctx, struct task_struct *task,
		      struct thread *thread, u64 now);
	/* The thread is about to be back on a CPU, @blocked and then @runnable ns later. */
	void (*off_cpu)(struct task_struct *task, struct thread *thread,
			u64 blocked, u64 runnable);
};

enum thread_kind {
	ALL_THREADS,
	USER_THREADS,
	KERNEL_THREADS,
};

const volatile enum thread_kind thread_kind = ALL_THREADS;
/* Threads that are not chosen have clocks, too. */
const volatile bool measure_everything = false;

/* The low bits of a clock are the state, the others when it began. */
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

/* Whether the command line asks for this thread. */
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

/* Set once find_preexisting has given a clock to every thread there was. */
volatile bool preexisting_are_known = false;

/*
 * Since when a thread without a record has been in the state that it is in:
 * since it moved to where it is measured, else since the window's start. If its
 * birth or its first event was missed, nothing is known of it before now.
 */
static __always_inline u64 unseen_since(struct task_struct *task, u64 now)
{
	u64 moved = moved_by(task, now);

	if (moved < now || preexisting_are_known || lost.clocks)
		return moved;
	return window_start;
}

/*
 * The ID of the user stack with which @task was off the CPU when its clock
 * started, @since, for user space to read. Who comes again has another one.
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
}

/*
 * Gives @task a clock that is in @state since @since, or finds the one that
 * another CPU gave it first. NULL if there is no room, or the caller's PID
 * namespace does not show the task. Out of line, as it is rare.
 */
static __noinline struct thread *new_thread(const struct clock_program *program,
					    struct task_struct *task, u64 since,
					    enum thread_state state,
					    enum draft_kind kind)
{
	u64 key = (u64)task;
	struct thread *thread, *found;
	u32 room = kind;

	thread = bpf_map_lookup_elem(program->drafts, &room);
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

/* Whether user space wants the account of a thread that ended. */
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
	/* Who deletes it tells of it: user space does of those that departed. */
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
