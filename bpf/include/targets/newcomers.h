/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Processes that begin where samples are taken. They may end soon, and user space
 * has to read their mappings before. No sample is to wake it: see can_wait().
 */
#ifndef SYSTEMSCOPE_NEWCOMERS_H
#define SYSTEMSCOPE_NEWCOMERS_H

#include "events.h"
#include "targets/filter.h"

/*
 * When user space was last told of one, CLOCK_MONOTONIC. It looks often for twice
 * as long as this is not told again.
 */
volatile u64 newcomer_ns = 0;

#define NEWCOMER_TOLD_NS (250 * 1000 * 1000ULL)

static __always_inline void tell_of_newcomer(void)
{
	u64 now = bpf_ktime_get_ns();
	u32 *event;

	if (now - newcomer_ns < NEWCOMER_TOLD_NS)
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(u32), 0);
	if (!event)
		return;
	newcomer_ns = now;
	*event = EVENT_NEWCOMER;
	bpf_ringbuf_submit(event, CANNOT_WAIT);
}

/* Runs in the one that forks. */
SEC("tp_btf/sched_wakeup_new")
int see_fork(u64 *ctx)
{
	struct task_struct *child = (void *)ctx[0];
	u64 ids = bpf_get_current_pid_tgid();

	if (child->pid == child->tgid &&
	    is_target(current_task(), ids >> 32, ids))
		tell_of_newcomer();
	return 0;
}

SEC("tp_btf/sched_process_exec")
int see_exec(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];

	if (is_target(task, task->tgid, task->pid))
		tell_of_newcomer();
	return 0;
}

#endif
