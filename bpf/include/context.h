/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Finds out whether a CPU works for its current task or handles an interrupt. */
#ifndef SYSTEMSCOPE_CONTEXT_H
#define SYSTEMSCOPE_CONTEXT_H

#include "preempt_count.h"
#include "task.h"

enum context {
	CONTEXT_TASK,
	CONTEXT_SOFTIRQ,
	CONTEXT_INTERRUPT,
	/* The program cannot tell; the kernel stack shows the context. */
	CONTEXT_UNKNOWN,
};

/* Layout of the preemption count: include/linux/preempt.h. */
#define SERVING_SOFTIRQ 0x100
#define HARDIRQ_AND_NMI_MASK 0xff0000

/*
 * Distance in bytes from the run queue of a CPU to its preemption count, set by user
 * space; 0 if unknown. The count is a per-CPU variable. Kernels without
 * CONFIG_KALLSYMS_ALL do not show its symbol, but BTF has the offsets of per-CPU
 * variables: __preempt_count or pcpu_hot, and runqueues. The current task points to its
 * run queue.
 */
const volatile s64 preempt_count_from_runqueue = 0;

/* Returns whether the CPU may be working for its current task. */
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
