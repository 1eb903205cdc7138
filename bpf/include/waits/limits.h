/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Limits that keep a runnable thread off its CPU:
 *
 * - the CPU quota of its cgroup (cpu.max; cpu.cfs_quota_us);
 * - its own budget under SCHED_DEADLINE;
 * - the share of CPU time that real-time threads may use (kernel.sched_rt_runtime_us).
 */
#ifndef SYSTEMSCOPE_LIMITS_H
#define SYSTEMSCOPE_LIMITS_H

#include "clock/thread_record.h"
#include "task.h"
#include <bpf/bpf_core_read.h>

/* MAX_RT_PRIO of include/linux/sched/prio.h; priorities below 0 are of SCHED_DEADLINE. */
#define MAX_REAL_TIME_PRIORITY 100

static __always_inline bool quota_is_used_up(struct task_struct *task)
{
	struct cfs_rq *queue;

	/*
	 * Since 6.18 the kernel throttles each thread by itself, on its way back to
	 * user space.
	 */
	if (bpf_core_field_exists(task->throttled))
		return read_task(task, throttled);
	/* Before 6.18 the kernel throttles the whole queue from which this thread ran. */
	queue = read_task(untrusted(task), se.cfs_rq);
	if (!bpf_core_field_exists(queue->throttle_count))
		return false;
	return BPF_CORE_READ(queue, throttle_count);
}

static __always_inline bool real_time_is_used_up(struct task_struct *task)
{
	struct rt_rq *queue = NULL;

	if (!bpf_core_field_exists(queue->rt_throttled))
		return false;
	if (bpf_core_field_exists(task->rt.rt_rq))
		return BPF_CORE_READ(task, rt.rt_rq, rt_throttled);
	return BPF_CORE_READ(task, se.cfs_rq, rq, rt.rt_throttled);
}

/*
 * Returns the limit of a deadline thread. Until its next period such a thread has used
 * up its budget, or has given up the rest of it: sched_yield(2).
 */
static __always_inline enum wait_end
find_deadline_limit(struct task_struct *task)
{
	struct sched_dl_entity *entity =
		(void *)task + bpf_core_field_offset(struct task_struct, dl);

	if (!BPF_CORE_READ_BITFIELD_PROBED(entity, dl_throttled))
		return WAIT_END_UNKNOWN;
	if (BPF_CORE_READ_BITFIELD_PROBED(entity, dl_yielded))
		return WAIT_END_DEADLINE_PERIOD;
	return WAIT_END_DEADLINE_BUDGET;
}

/*
 * Returns the limit that keeps @task off its CPU, which it is leaving or has left;
 * WAIT_END_UNKNOWN if there is none.
 */
static __always_inline enum wait_end find_limit(struct task_struct *task)
{
	int priority = read_task(task, prio);

	if (priority < 0)
		return find_deadline_limit(task);
	if (priority < MAX_REAL_TIME_PRIORITY)
		return real_time_is_used_up(task) ? WAIT_END_REAL_TIME :
						    WAIT_END_UNKNOWN;
	return quota_is_used_up(task) ? WAIT_END_QUOTA : WAIT_END_UNKNOWN;
}

#endif
