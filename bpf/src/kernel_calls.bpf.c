// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Finds the kernel function that the call before a return address calls. The kernel's
 * stack traces leave out the functions of the scheduler and of its locks:
 * in_sched_functions() of kernel/stacktrace.c. The first function that they leave out
 * shows the reason for a wait.
 */
#include "kernel_types.h"

#include <bpf/bpf_helpers.h>

/* call rel32: Intel's manual, volume 2, "CALL". */
#define CALL_OPCODE 0xe8
#define CALL_BYTES 5

/*
 * Returns the distance from a return address, the first argument, to the function that
 * the call before it calls; 0 if there is no direct call. User space runs this.
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
