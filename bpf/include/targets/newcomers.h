/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Processes that begin. They may end soon, and user space has to read their mappings
 * before.
 */
#ifndef SYSTEMSCOPE_NEWCOMERS_H
#define SYSTEMSCOPE_NEWCOMERS_H

#include "news.h"
#include "targets/filter.h"

static __always_inline void tell_of_newcomer(void)
{
	u32 *event;

	if (!is_news())
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(u32), 0);
	if (!event)
		return;
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
