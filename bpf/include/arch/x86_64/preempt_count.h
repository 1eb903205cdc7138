/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Place of a CPU's preemption count: a per-CPU variable, arch/x86/include/asm/preempt.h. */
#ifndef SYSTEMSCOPE_PREEMPT_COUNT_H
#define SYSTEMSCOPE_PREEMPT_COUNT_H

#include "kernel_types.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/*
 * Reads the preemption count of the CPU with the run queue @rq. The count's variable is
 * @from_runqueue bytes from the run queue. Returns false if the read fails.
 */
static __always_inline bool read_preempt_count(int *count, void *rq,
					       s64 from_runqueue)
{
	void *address = rq + from_runqueue;

	if (bpf_core_type_exists(struct pcpu_hot))
		address +=
			bpf_core_field_offset(struct pcpu_hot, preempt_count);
	return !bpf_probe_read_kernel(count, sizeof(*count), address);
}

#endif
