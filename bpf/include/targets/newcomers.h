/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Reports new programs. A program may end soon, and user space must read its mappings
 * before that. A forked process has its parent's mappings and needs no report.
 */
#ifndef SYSTEMSCOPE_NEWCOMERS_H
#define SYSTEMSCOPE_NEWCOMERS_H

#include "news.h"
#include "targets/filter.h"

/* Handles sched_process_exec. */
static __always_inline int report_newcomer(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 *event;

	if (!is_target(task, task->tgid, task->pid) || !note_news())
		return 0;
	event = bpf_ringbuf_reserve(&events, sizeof(u32), 0);
	if (!event)
		return 0;
	*event = EVENT_NEWCOMER;
	bpf_ringbuf_submit(event, CANNOT_WAIT);
	return 0;
}

#endif
