/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Which threads are measured. IDs are those of the initial PID namespace. */
#ifndef SYSTEMSCOPE_FILTER_H
#define SYSTEMSCOPE_FILTER_H

#include "task.h"

/* User space sets the number of targets to what the command line names. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u8);
} target_pids SEC(".maps"), target_tids SEC(".maps");

const volatile bool filter_pids = false;
const volatile bool filter_tids = false;
/* The one target process, where there is just one: saves looking it up. */
const volatile u32 only_pid = 0;

/*
 * When they were named, CLOCK_MONOTONIC: whoever is younger has an ID that is
 * used again. 0 if that is not known.
 */
const volatile u64 targets_named_ns = 0;

static __always_inline bool was_there(struct task_struct *task)
{
	return !targets_named_ns ||
	       BPF_CORE_READ(task, start_time) <= targets_named_ns;
}

static __always_inline bool process_was_there(struct task_struct *task)
{
	return was_there(BPF_CORE_READ(task, group_leader));
}

/* The IDs are @task's. */
static __always_inline bool is_target(struct task_struct *task, u32 pid,
				      u32 tid)
{
	if (only_pid)
		return pid == only_pid && process_was_there(task);
	if (!filter_pids && !filter_tids)
		return true;
	if (filter_pids && bpf_map_lookup_elem(&target_pids, &pid) &&
	    process_was_there(task))
		return true;
	return filter_tids && bpf_map_lookup_elem(&target_tids, &tid) &&
	       was_there(task);
}

/* What a listing of threads says of each one. */
struct thread_ids {
	u32 pid;
	u32 tid;
	u32 namespace_pid;
	u32 namespace_tid;
	/* 0 for a kernel thread. */
	u64 instance;
};

USER_SPACE_KNOWS(struct, thread_ids);

/*
 * Lists every thread that the caller can see: its IDs, which in a container
 * are not the kernel's, and which program its process runs.
 */
SEC("iter/task")
int list_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread_ids ids;

	if (!task)
		return 0;
	ids.pid = BPF_CORE_READ(task, tgid);
	ids.tid = BPF_CORE_READ(task, pid);
	ids.namespace_pid = namespace_pid(task);
	ids.namespace_tid = namespace_tid(task);
	ids.instance = is_kernel_thread(task) ? 0 : process_instance(task);
	bpf_seq_write(ctx->meta->seq, &ids, sizeof(ids));
	return 0;
}

#endif
