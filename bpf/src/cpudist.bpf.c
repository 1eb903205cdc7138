// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Counts spans by their length: the time that threads spend on the CPU, off it, or
 * waiting for it. User space loads the programs for one of these only.
 */
#include "targets/children.h"
#include "spans/running_spans.h"
#include "spans/waiting_spans.h"

/* See struct clock_program. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DRAFT_KINDS);
	__type(key, u32);
	__type(value, struct thread);
} thread_drafts SEC(".maps");

static __always_inline void thread_left_cpu(void *ctx, struct task_struct *task,
					    struct thread *thread)
{
}

static __always_inline void thread_woken(void *ctx, struct task_struct *task,
					 struct thread *thread, u64 now)
{
}

static __always_inline void off_cpu_interval(struct task_struct *task,
					     struct thread *thread, u64 blocked,
					     u64 runnable)
{
	count_wait(task, thread, blocked, runnable);
}

static const struct clock_program waits = {
	.threads = &threads,
	.drafts = &thread_drafts,
	.record_size = sizeof(struct thread),
	.left_cpu = thread_left_cpu,
	.woken = thread_woken,
	.off_cpu = off_cpu_interval,
};

/*
 * Names of owners that ended, which /proc no longer has. The map evicts the oldest
 * names first.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, u32);
	__type(value, char[COMM_LENGTH]);
} ended_owners SEC(".maps");

SEC("tp_btf/sched_process_exit")
int note_name(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	char comm[COMM_LENGTH] = {};
	u32 owner;

	if (!is_measured(task))
		return 0;
	owner = span_owner_id(task, task->tgid, task->pid);
	if (span_owner == OWNER_PROCESS)
		BPF_CORE_READ_STR_INTO(&comm, task, group_leader, comm);
	else
		BPF_CORE_READ_STR_INTO(&comm, task, comm);
	if (owner)
		bpf_map_update_elem(&ended_owners, &owner, comm, BPF_ANY);
	return 0;
}

/* Spans on a CPU, and periods. */

SEC("tp_btf/sched_switch")
int switch_running(u64 *ctx)
{
	return count_switch(ctx);
}

/*
 * Splits the span on this CPU at the end of a period. User space runs it on each CPU,
 * where no switch and no other counting can interrupt it.
 */
SEC("raw_tp")
int visit_cpu(void *ctx)
{
	return split_running();
}

SEC("raw_tp")
int begin_interval(u64 *arguments)
{
	return try_begin_interval(arguments);
}

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

SEC("iter/task")
int find_preexisting(struct bpf_iter__task *ctx)
{
	return start_missing_clock(&waits, ctx);
}

SEC("iter/task")
int read_waiting(struct bpf_iter__task *ctx)
{
	return write_waiting(&waits, ctx);
}

SEC("iter/task")
int find_departed(struct bpf_iter__task *ctx)
{
	return write_departed_wait(&waits, ctx);
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
