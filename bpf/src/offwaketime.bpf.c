// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Counts blocked time by the sleeper's stack and its waker. */
#include "wakers.h"

#include "targets/children.h"
#include "clock/clock_events.h"
#include "clock/intervals.h"
#include "stacks/stack_edges.h"
#include "targets/newcomers.h"

/* Record of a thread. */
struct sleeper {
	struct stack_thread record;
	struct wake wake;
};

/* See struct clock_program. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, struct sleeper);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DRAFT_KINDS);
	__type(key, u32);
	__type(value, struct sleeper);
} thread_drafts SEC(".maps");

static __always_inline struct wake *wake_of(struct thread *thread)
{
	return &((struct sleeper *)thread)->wake;
}

static __always_inline void thread_left_cpu(void *ctx, struct task_struct *task,
					    struct thread *thread)
{
	u32 state = thread->off_state;

	/*
	 * A preempted thread did not wait, so the record keeps the waker of its last
	 * wait.
	 */
	if (!state)
		return;
	wake_of(thread)->waker = WAKER_MISSED;
	if (!state_is_wanted(state) || !is_chosen(task))
		return;
	thread->user = user_stack_left(ctx, task, thread);
	thread->lock_holder = lock_holder(task, thread);
	thread->lock_class = lock_class(task, thread);
}

static __always_inline void thread_woken(void *ctx, struct task_struct *task,
					 struct thread *thread, u64 now)
{
	bool counts = is_chosen(task) && state_is_wanted(thread->off_state) &&
		      length_is_wanted(thread->off_blocked);
	u64 current = bpf_get_current_task();
	struct sleeper *waking = NULL;
	enum context context;
	u64 waker;

	if (window_is_over(now)) {
		wake_of(thread)->waker = WAKER_STILL_BLOCKED;
		return;
	}
	context = current_context();
	if (counts && !waker_is_wanted(context)) {
		counts = false;
		wake_of(thread)->waker = WAKER_UNWANTED;
	}
	if (!counts && chain_length == 1)
		return;

	waker = capture_waker(ctx, task, context, true);
	if (chain_length > 1 && may_be_task(context))
		waking = bpf_map_lookup_elem(&threads, &current);
	follow_chain(wake_of(thread), waker, waking ? &waking->wake : NULL);
	if (!counts)
		return;
	if (wake_of(thread)->hop_count > 1)
		waker = publish_chain(wake_of(thread));
	wake_of(thread)->waker = waker;
}

static __always_inline bool weigh(struct thread *thread, u64 blocked,
				  u64 runnable, bool is_open,
				  struct weighed *weighed)
{
	u64 waker = wake_of(thread)->waker;

	if (!blocked || !length_is_wanted(blocked) ||
	    !state_is_wanted(thread->off_state))
		return false;
	if (is_open && !runnable && waker == WAKER_MISSED)
		waker = WAKER_STILL_BLOCKED;
	if (waker <= WAKER_UNWANTED && !any_waker_is_wanted())
		return false;
	*weighed = (struct weighed){
		.waker = waker,
		.weight = {
			.events = 1,
			.blocked = blocked,
			.runnable = runnable,
			.longest = blocked,
			.shortest = blocked,
			.squares = square_of(blocked),
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
	if (is_chosen(task))
		count_interval(task, thread, weighed.waker, weighed.period,
			       &weight);
}

static const struct clock_program sleeps = {
	.threads = &threads,
	.drafts = &thread_drafts,
	.record_size = sizeof(struct sleeper),
	.left_cpu = thread_left_cpu,
	.woken = thread_woken,
	.off_cpu = off_cpu_interval,
	.send_part = send_uncounted,
};

/* The thread clock. */

SEC("tp_btf/sched_switch")
int sched_switch(u64 *ctx)
{
	return follow_switch(&sleeps, ctx);
}

SEC("tp_btf/sched_waking")
int sched_waking(u64 *ctx)
{
	return follow_waking(&sleeps, ctx);
}

SEC("tp_btf/sched_wakeup_new")
int sched_wakeup_new(u64 *ctx)
{
	return follow_birth(&sleeps, ctx);
}

SEC("tp_btf/sched_process_exec")
int sched_process_exec(u64 *ctx)
{
	return follow_exec(&sleeps, ctx);
}

SEC("tp_btf/cgroup_attach_task")
int note_move(u64 *ctx)
{
	return follow_move(&sleeps, ctx);
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
	return write_preexisting(&sleeps, ctx);
}

SEC("iter/task")
int read_open_intervals(struct bpf_iter__task *ctx)
{
	return read_open_interval(&sleeps, ctx);
}

SEC("raw_tp")
int close_record_of(u64 *arguments)
{
	return close_thread(&sleeps, weigh, arguments);
}

SEC("?iter/task")
int find_unreturned(struct bpf_iter__task *ctx)
{
	return write_unreturned(&sleeps, ctx);
}

SEC("iter/task")
int find_departed(struct bpf_iter__task *ctx)
{
	return write_departure(&sleeps, weigh, ctx);
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
