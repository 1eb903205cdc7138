/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Whose work a CPU is doing: the current task's, or an interrupt's. */
#ifndef SYSTEMSCOPE_CONTEXT_H
#define SYSTEMSCOPE_CONTEXT_H

#include "preempt_count.h"
#include "task.h"

enum context {
	CONTEXT_TASK,
	CONTEXT_SOFTIRQ,
	CONTEXT_INTERRUPT,
	/* The kernel stack will show. */
	CONTEXT_UNKNOWN,
};

/* Layout of the count: include/linux/preempt.h. */
#define SERVING_SOFTIRQ 0x100
#define HARDIRQ_AND_NMI_MASK 0xff0000

/*
 * A CPU's preemption count is a per-CPU variable. Its symbol is not there on
 * kernels without CONFIG_KALLSYMS_ALL, but BTF says how far it is from another
 * one, the run queue, to which the current task leads. User space sets that
 * distance, between __preempt_count or pcpu_hot and runqueues; 0 if unknown.
 */
const volatile s64 preempt_count_from_runqueue = 0;

/* Whether the current task may be the one that acts. */
static __always_inline bool may_be_task(enum context context)
{
	return context == CONTEXT_TASK || context == CONTEXT_UNKNOWN;
}

static __always_inline enum context current_context(void)
{
	void *rq;
	int count;

	if (!preempt_count_from_runqueue)
		return CONTEXT_UNKNOWN;
	rq = read_task(untrusted(current_task()), se.cfs_rq, rq);
	if (!read_preempt_count(&count, rq, preempt_count_from_runqueue))
		return CONTEXT_UNKNOWN;
	if (count & HARDIRQ_AND_NMI_MASK)
		return CONTEXT_INTERRUPT;
	return count & SERVING_SOFTIRQ ? CONTEXT_SOFTIRQ : CONTEXT_TASK;
}

#endif
