// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Which function a return address of the kernel's returns from. A thread's stack as the
 * kernel tells it leaves out the functions of the scheduler and of its locks
 * (in_sched_functions() of kernel/stacktrace.c), and what was called there says why.
 */
#include "kernel_types.h"

#include <bpf/bpf_helpers.h>

/* call rel32: Intel's manual, volume 2, "CALL". */
#define CALL_OPCODE 0xe8
#define CALL_BYTES 5

/*
 * Run by user space with a return address as its first argument. Returns how far from
 * there the function begins; 0 if what is before it calls none that is known beforehand.
 */
SEC("raw_tp")
int read_call(u64 *arguments)
{
	u64 address = arguments[0];
	u8 opcode;
	s32 distance;

	if (bpf_probe_read_kernel(&opcode, sizeof(opcode),
				  (void *)(address - CALL_BYTES)) ||
	    opcode != CALL_OPCODE)
		return 0;
	if (bpf_probe_read_kernel(&distance, sizeof(distance),
				  (void *)(address - sizeof(distance))))
		return 0;
	return distance;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
