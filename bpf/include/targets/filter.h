/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Selects the threads that are measured. IDs are those of the initial PID namespace. */
#ifndef SYSTEMSCOPE_FILTER_H
#define SYSTEMSCOPE_FILTER_H

#include "targets/cgroups.h"
#include "task.h"

/*
 * Targets, each with its start time, which differs from that of a later process or
 * thread with the same ID. User space sets the capacity to the number of targets on the
 * command line.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} target_pids SEC(".maps"), target_tids SEC(".maps");

const volatile bool filter_pids = false;
const volatile bool filter_tids = false;
/* PID of the target process if there is exactly one target, to save a lookup; else 0. */
const volatile u32 only_pid = 0;

/*
 * Time at which the user named the targets, in ns of CLOCK_MONOTONIC. A younger process
 * with the same PID is no target.
 */
const volatile u64 targets_named_ns = 0;

/* Time at which the first awaited target appeared, in ns of CLOCK_MONOTONIC; 0 before. */
volatile u64 first_awaited_ns = 0;

/* Returns whether @task, with these IDs, is a target. */
static __always_inline bool is_target(struct task_struct *task, u32 pid,
				      u32 tid)
{
	u64 *started;

	if (only_pid)
		return pid == only_pid &&
		       process_started(task) <= targets_named_ns;
	if (by_membership) {
		if (!is_in_pinned_maps(task))
			return false;
		if (filter_cgroups && is_in_target_cgroup(task))
			return true;
	}
	if (!filter_pids && !filter_tids)
		return !filter_cgroups;
	if (filter_pids) {
		started = bpf_map_lookup_elem(&target_pids, &pid);
		if (started && *started == process_started(task))
			return true;
	}
	if (filter_tids) {
		started = bpf_map_lookup_elem(&target_tids, &tid);
		if (started && *started == read_task(task, start_time))
			return true;
	}
	return false;
}

/* Thread in the list that user space reads. */
struct thread_ids {
	u32 pid;
	u32 tid;
	u32 namespace_pid;
	u32 namespace_tid;
	/* 0 for a kernel thread. */
	u64 instance;
	/* Start times of the thread and of its process, in ns of CLOCK_MONOTONIC. */
	u64 started;
	u64 process_started;
	/* Process that forked this process or adopted it. */
	u32 parent;
	u32 is_target;
};

USER_SPACE_KNOWS(struct, thread_ids);

/*
 * Writes a thread that has not ended. In a container the IDs that the caller sees are
 * not the kernel's, so the message has both.
 */
static __always_inline int write_thread_ids(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread_ids ids = {};

	if (!task || task->exit_state)
		return 0;
	ids.pid = BPF_CORE_READ(task, tgid);
	ids.tid = BPF_CORE_READ(task, pid);
	ids.namespace_pid = namespace_pid(task);
	ids.namespace_tid = namespace_tid(task);
	ids.instance = is_kernel_thread(task) ? 0 : process_instance(task);
	ids.started = read_task(task, start_time);
	ids.process_started = process_started(task);
	ids.parent = BPF_CORE_READ(task, group_leader, real_parent, tgid);
	ids.is_target = is_target(task, ids.pid, ids.tid);
	bpf_seq_write(ctx->meta->seq, &ids, sizeof(ids));
	return 0;
}

#endif
