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
 * The program that includes this says what it does with an interval by
 * defining thread_left_cpu(), thread_woken() and off_cpu_interval().
 */
#ifndef SYSTEMSCOPE_THREAD_CLOCK_H
#define SYSTEMSCOPE_THREAD_CLOCK_H

#include "clock/moves.h"
#include "events.h"
#include "filter.h"
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
	/* It was not blocked: its cgroup had used up its CPU quota. */
	WAIT_END_QUOTA,
};

USER_SPACE_KNOWS(enum, wait_end);

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

/* A program may keep more of each thread: members of its own, at the end. */
#ifndef THREAD_MEMBERS
#define THREAD_MEMBERS
#endif

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
	THREAD_MEMBERS
};

/* A thread that ended. Its clock stopped at @ended. */
struct thread_end {
	u32 kind;
	u32 unused;
	u64 ended;
	struct thread thread;
};

USER_SPACE_KNOWS(struct, thread_end);

/* By task: a thread that replaces its leader in exec changes its ID. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, struct thread);
} threads SEC(".maps");

enum thread_kind {
	ALL_THREADS,
	USER_THREADS,
	KERNEL_THREADS,
};

const volatile enum thread_kind thread_kind = ALL_THREADS;
/* Threads that are not chosen have clocks, too. */
const volatile bool measure_everything = false;

/* The thread is about to leave its CPU, which it is current on. */
static __always_inline void thread_left_cpu(void *ctx, struct task_struct *task,
					    struct thread *thread);

/* The thread's blocked time is over at @now; its waker is current, or not. */
static __always_inline void thread_woken(void *ctx, struct task_struct *task,
					 struct thread *thread, u64 now);

/* The thread is about to be back on a CPU. */
static __always_inline void off_cpu_interval(struct task_struct *task,
					     struct thread *thread, u64 blocked,
					     u64 runnable);

static __always_inline u64 clock_at(u64 since, enum thread_state state)
{
	return since << 2 | state;
}

static __always_inline u64 clock_since(u64 clock)
{
	return clock >> 2;
}

static __always_inline enum thread_state clock_state(u64 clock)
{
	return clock & 3;
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

static __always_inline struct thread *find_thread(struct task_struct *task)
{
	u64 key = (u64)task;

	return bpf_map_lookup_elem(&threads, &key);
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
	if (is_kernel_thread(task))
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

/* Where a record is made: what looks there may be interrupted by what is before it. */
enum draft_kind {
	/* Where no interrupt comes. */
	DRAFT_AT_SWITCH,
	DRAFT_AT_EXEC,
	DRAFT_IN_ITERATOR,
	DRAFT_KINDS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DRAFT_KINDS);
	__type(key, u32);
	__type(value, struct thread);
} thread_drafts SEC(".maps");

/*
 * Gives @task a clock that is in @state since @since, or finds the one that
 * another CPU gave it first. NULL if there is no room, or the caller's PID
 * namespace does not show the task. Out of line, as it is rare.
 */
static __noinline struct thread *new_thread(struct task_struct *task, u64 since,
					    enum thread_state state,
					    enum draft_kind kind)
{
	u64 key = (u64)task;
	struct thread *thread, *found;
	u32 room = kind;

	thread = bpf_map_lookup_elem(&thread_drafts, &room);
	if (!thread || window_is_over(since))
		return NULL;
	__builtin_memset(thread, 0, sizeof(*thread));
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

	bpf_map_update_elem(&threads, &key, thread, BPF_NOEXIST);
	found = bpf_map_lookup_elem(&threads, &key);
	if (!found)
		__sync_fetch_and_add(&lost.clocks, 1);
	return found;
}

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

/* The thread got a CPU: ends its off-CPU interval. */
static __always_inline void arrive(struct task_struct *task,
				   struct thread *thread, u64 now)
{
	enum thread_state state = clock_state(thread->clock);
	u64 off;

	/*
	 * Woken between its decision to sleep and the switch: the waker's
	 * event came first, and all of the time was a wait for a CPU.
	 */
	if (state == THREAD_BLOCKED && thread->woken_early)
		state = THREAD_RUNNABLE;
	now = close_interval(thread, state, now);
	if (state == THREAD_BLOCKED)
		thread->off_blocked = now - thread->off_since;

	off = now - thread->off_since;
	if (state != THREAD_RUNNING && off)
		off_cpu_interval(task, thread, thread->off_blocked,
				 off - thread->off_blocked);
	thread->woken_early = 0;
	thread->ran_before = time_run(task);
	thread->clock = clock_at(now, THREAD_RUNNING);
}

/*
 * The current thread runs, and its switch-in was not shown to us. The
 * scheduler knows how long ago that was.
 */
static __always_inline void arrive_belatedly(struct task_struct *task,
					     struct thread *thread, u64 now)
{
	u64 since = clock_since(thread->clock);
	u64 ran = time_run(task) - thread->ran_before;

	if (!window_is_over(now))
		__sync_fetch_and_add(&lost.switches, 1);
	arrive(task, thread, now > since + ran ? now - ran : since);
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
	thread->user = is_kernel_thread(task) ? STACK_NONE : STACK_MISSED;
	thread->lock_holder = 0;
	thread->work.end = WAIT_END_UNKNOWN;
	*(volatile u64 *)&thread->clock =
		clock_at(now, state ? THREAD_BLOCKED : THREAD_RUNNABLE);
}

/* Whether user space wants the account of a thread that ended. */
const volatile bool want_thread_ends = true;

static __always_inline void report_end(struct task_struct *task,
				       struct thread *thread, u64 now)
{
	struct thread_end *end;
	u64 key = (u64)task;

	BPF_CORE_READ_STR_INTO(&thread->comm, task, comm);
	end = bpf_ringbuf_reserve(&events, sizeof(*end), 0);
	if (!end) {
		__sync_fetch_and_add(&lost.thread_ends, 1);
		bpf_map_delete_elem(&threads, &key);
		return;
	}
	end->kind = EVENT_THREAD_END;
	end->ended = now;
	__builtin_memcpy(&end->thread, thread, sizeof(*thread));
	/* Who deletes it tells of it: user space does of those that departed. */
	if (bpf_map_delete_elem(&threads, &key) && by_membership)
		bpf_ringbuf_discard(end, BPF_RB_NO_WAKEUP);
	else
		bpf_ringbuf_submit(end, can_wait());
}

static __always_inline void end_thread(struct task_struct *task,
				       struct thread *thread, u64 now)
{
	u64 key = (u64)task;

	if (want_thread_ends)
		report_end(task, thread, now);
	else
		bpf_map_delete_elem(&threads, &key);
}

/* The thread is no longer measured: since it moved, if that is why. */
static __always_inline void leave(struct task_struct *task,
				  struct thread *thread, u64 now)
{
	now = close_interval(thread, clock_state(thread->clock),
			     moved_by(task, now));
	end_thread(task, thread, now);
}

/*
 * @task ends where it is not measured, and so does its record if it had moved
 * there. Returns whether that can be: IDs can be gone as well.
 */
static __always_inline bool ended_elsewhere(struct task_struct *task)
{
	struct thread *thread;
	u64 now;

	if (!by_membership)
		return false;
	thread = find_thread(task);
	now = window_now();
	if (thread && now)
		leave(task, thread, now);
	return true;
}

/*
 * The record of @task if that was measured and is no longer. A thread that is
 * on its way out ends its record itself.
 */
static __always_inline struct thread *
find_departed_thread(struct task_struct *task)
{
	if (is_measured(task) || BPF_CORE_READ(task, flags) & PF_EXITING)
		return NULL;
	return find_thread(task);
}

static __always_inline void switch_out(void *ctx, struct task_struct *task,
				       bool preempt, u32 state, u64 now)
{
	struct thread *thread = find_thread(task);
	bool voluntary = !preempt && state;
	bool blocked;

	if (!thread) {
		if ((state & TASK_DEAD) && !is_measured(task))
			return;
		thread = new_thread(task, unseen_since(task, now),
				    THREAD_RUNNING, DRAFT_AT_SWITCH);
		if (!thread)
			return;
	}
	if (clock_state(thread->clock) != THREAD_RUNNING)
		arrive_belatedly(task, thread, now);
	now = close_interval(thread, THREAD_RUNNING, now);

	if (voluntary && (state & TASK_DEAD)) {
		end_thread(task, thread, now);
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
	thread_left_cpu(ctx, task, thread);
	barrier();
	*(volatile u64 *)&thread->clock =
		clock_at(now, blocked ? THREAD_BLOCKED : THREAD_RUNNABLE);
}

static __always_inline void switch_in(struct task_struct *task, u64 now)
{
	struct thread *thread = find_thread(task);

	if (!thread) {
		thread = new_thread(task, unseen_since(task, now),
				    THREAD_RUNNABLE, DRAFT_AT_SWITCH);
		if (!thread)
			return;
	}
	/* It must have left unseen. Nobody had to wake it that we know of. */
	if (clock_state(thread->clock) == THREAD_RUNNING)
		depart_belatedly(task, thread, 0, now);
	arrive(task, thread, now);
}

#endif
