// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * How long threads stay on the CPU, off it, or wait for it: spans counted by
 * their length. User space loads the programs for one of these questions only.
 */
#include "targets/children.h"
#include "spans/running_spans.h"
#include "spans/waiting_spans.h"

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

/*
 * The names of owners that end. A thread that has been reaped can no longer be
 * asked for its name; the oldest make room.
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

char LICENSE[] SEC("license") = "Dual MIT/GPL";
