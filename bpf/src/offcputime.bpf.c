// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Counts time off the CPU by stack. An interval is counted when its thread is back. */
#include "targets/children.h"
#include "clock/clock_events.h"
#include "clock/intervals.h"
#include "clock/short_intervals.h"
#include "stacks/stack_edges.h"
#include "targets/newcomers.h"
#include "waits/limits.h"
#include "waker_hops.h"

/* Record of a thread. */
struct waiting_thread {
	struct stack_thread record;
	struct short_time short_blocked;
	struct short_time short_runnable;
	/* Waker of the thread's last wait; unused without want_wakers. */
	u64 waker;
};

/* See struct clock_program. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, struct waiting_thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DRAFT_KINDS);
	__type(key, u32);
	__type(value, struct waiting_thread);
} thread_drafts SEC(".maps");

static __always_inline struct waiting_thread *
waiting_thread(struct thread *thread)
{
	return (struct waiting_thread *)thread;
}

/* True to capture the waker, with its stacks, of each wait for a futex that counts. */
const volatile bool want_wakers = false;

static __always_inline void thread_left_cpu(void *ctx, struct task_struct *task,
					    struct thread *thread)
{
	if (want_wakers)
		waiting_thread(thread)->waker = WAKER_MISSED;
	if (!state_is_wanted(thread->off_state))
		return;
	thread->user = user_stack_left(ctx, task, thread);
	thread->lock_holder = thread->off_state ? lock_holder(task, thread) : 0;
	thread->lock_class = thread->off_state ? lock_class(task, thread) : 0;
	if (!thread->off_state && want_objects)
		thread->work.end = find_limit(task);
}

/*
 * Returns whether to note the waker of @task, which is current if @context is not an
 * interrupt's, with its stacks. Other processes may have no unwind tables.
 */
static __always_inline bool waker_has_stacks(struct task_struct *task,
					     struct thread *thread,
					     enum context context)
{
	return may_be_task(context) &&
	       thread->instance == process_instance(current_task()) &&
	       waits_for_futex(task);
}

static __always_inline void thread_woken(void *ctx, struct task_struct *task,
					 struct thread *thread, u64 now)
{
	enum context context;
	bool with_stacks;

	if (!want_wakers || window_is_over(now) ||
	    !state_is_wanted(thread->off_state) ||
	    !length_is_wanted(thread->off_blocked))
		return;
	context = current_context();
	with_stacks = waker_has_stacks(task, thread, context);
	/* A timeline shows who ended each wait that has an entry of its own. */
	if (!with_stacks && !(want_timeline && is_kept(thread->off_blocked)))
		return;
	waiting_thread(thread)->waker =
		capture_waker(ctx, task, context, with_stacks);
}

static __always_inline bool weigh(struct thread *thread, u64 blocked,
				  u64 runnable, bool is_open,
				  struct weighed *weighed)
{
	u64 length = blocked + runnable, period = 0, waker = WAKER_MISSED;

	if (!state_is_wanted(thread->off_state))
		return false;
	/* An interval that has not ended is not sampled: its final length is unknown. */
	if (sample_short && !is_open && length < min_interval) {
		period = min_interval;
		blocked =
			pass_short_time(&waiting_thread(thread)->short_blocked,
					blocked, period);
		runnable =
			pass_short_time(&waiting_thread(thread)->short_runnable,
					runnable, period);
		if (!blocked && !runnable)
			return false;
	} else if (!length_is_wanted(length)) {
		return false;
	} else if (want_wakers && blocked) {
		waker = waiting_thread(thread)->waker;
	}
	*weighed = (struct weighed){
		.waker = waker,
		.period = period,
		.weight = {
			.events = 1,
			.blocked = blocked,
			.runnable = runnable,
			.longest = length,
			.shortest = length,
			.squares = period ? 0 : square_of(length),
		},
	};
	return true;
}

static __always_inline void off_cpu_interval(struct task_struct *task,
					     struct thread *thread, u64 blocked,
					     u64 runnable)
{
	struct weighed weighed;
	struct tally weight;

	if (!weigh(thread, blocked, runnable, false, &weighed))
		return;
	/* The copy keeps only the weight on the stack, not the whole struct. */
	weight = weighed.weight;
	count_interval(task, thread, weighed.waker, weighed.period, &weight);
}

static const struct clock_program waits = {
	.threads = &threads,
	.drafts = &thread_drafts,
	.record_size = sizeof(struct waiting_thread),
	.left_cpu = thread_left_cpu,
	.woken = thread_woken,
	.off_cpu = off_cpu_interval,
	.send_part = send_uncounted,
};

/* The thread clock. */

SEC("tp_btf/sched_switch")
int sched_switch(u64 *ctx)
{
	return follow_switch(&waits, ctx);
}

SEC("tp_btf/sched_waking")
int sched_waking(u64 *ctx)
{
	return follow_waking(&waits, ctx);
}

SEC("tp_btf/sched_wakeup_new")
int sched_wakeup_new(u64 *ctx)
{
	return follow_birth(&waits, ctx);
}

SEC("tp_btf/sched_process_exec")
int sched_process_exec(u64 *ctx)
{
	return follow_exec(&waits, ctx);
}

SEC("tp_btf/cgroup_attach_task")
int note_move(u64 *ctx)
{
	return follow_move(&waits, ctx);
}

/* Loaded on request: kernels before 6.15 have no such event. */
SEC("?tp_btf/sched_exit_tp")
int thread_is_back(u64 *ctx)
{
	return count_returning(ctx, current_task());
}

/* Names of threads in a timeline. */

SEC("?tp_btf/task_rename")
int note_rename(u64 *ctx)
{
	return send_name((void *)ctx[0], (void *)ctx[1], TIMELINE_RENAME);
}

SEC("?tp_btf/sched_process_exec")
int note_exec(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];

	return send_name(task, task->comm, TIMELINE_EXEC);
}

/* The window's edges. */

SEC("iter/task")
int find_preexisting(struct bpf_iter__task *ctx)
{
	return write_preexisting(&waits, ctx);
}

SEC("iter/task")
int read_open_intervals(struct bpf_iter__task *ctx)
{
	return read_open_interval(&waits, ctx);
}

SEC("raw_tp")
int close_record_of(u64 *arguments)
{
	return close_thread(&waits, weigh, arguments);
}

SEC("?iter/task")
int find_unreturned(struct bpf_iter__task *ctx)
{
	return write_unreturned(&waits, ctx);
}

SEC("iter/task")
int find_departed(struct bpf_iter__task *ctx)
{
	return write_departure(&waits, weigh, ctx);
}

SEC("tp_btf/sched_process_exec")
int report_exec(u64 *ctx)
{
	return report_newcomer(ctx);
}

/* Returns whether a program is counting on this CPU. User space runs it on each CPU. */
SEC("raw_tp")
int visit_cpu(void *ctx)
{
	return is_counting_here();
}

/* Targets. */

SEC("tp_btf/cgroup_mkdir")
int await_cgroup(u64 *ctx)
{
	return add_awaited_cgroup(ctx);
}

SEC("tp_btf/cgroup_attach_task")
int await_member(u64 *ctx)
{
	return note_first_member((void *)ctx[2]);
}

SEC("tp_btf/sched_wakeup_new")
int await_birth(u64 *ctx)
{
	return note_first_member((void *)ctx[0]);
}

SEC("tp_btf/sched_process_exec")
int await_program(u64 *ctx)
{
	return add_awaited_program(ctx);
}

SEC("tp_btf/sched_wakeup_new")
int follow_fork(u64 *ctx)
{
	return add_fork(ctx);
}

SEC("tp_btf/sched_process_exec")
int describe_program(u64 *ctx)
{
	return send_program(ctx);
}

SEC("tp_btf/sched_process_free")
int forget_process(u64 *ctx)
{
	return remove_process(ctx);
}

SEC("iter/task")
int list_threads(struct bpf_iter__task *ctx)
{
	return write_thread_ids(ctx);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
