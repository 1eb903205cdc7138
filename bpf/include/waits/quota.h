/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Whether a thread that could run leaves its CPU because its cgroup, or one above it, has
 * used up its CPU quota (cpu.max; cpu.cfs_quota_us).
 */
#ifndef SYSTEMSCOPE_QUOTA_H
#define SYSTEMSCOPE_QUOTA_H

#include "kernel_types.h"
#include "task.h"
#include <bpf/bpf_core_read.h>

/* MAX_RT_PRIO of include/linux/sched/prio.h: a quota is that of the others. */
#define MAX_REAL_TIME_PRIORITY 100

static __always_inline bool quota_is_used_up(struct task_struct *task)
{
	struct cfs_rq *queue;

	/* Since 6.18 each thread leaves by itself, on its way back to user space. */
	if (bpf_core_field_exists(task->throttled))
		return read_task(task, throttled);
	/* Before, all that are in the queue do at once, of which this one ran. */
	queue = read_task(untrusted(task), se.cfs_rq);
	if (!bpf_core_field_exists(queue->throttle_count) ||
	    read_task(task, prio) < MAX_REAL_TIME_PRIORITY)
		return false;
	return BPF_CORE_READ(queue, throttle_count);
}

#endif
