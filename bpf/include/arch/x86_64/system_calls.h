/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * System calls in which threads wait, and which resources their arguments name. The
 * numbers are from arch/x86/entry/syscalls/syscall_64.tbl.
 */
#ifndef SYSTEMSCOPE_SYSTEM_CALLS_H
#define SYSTEMSCOPE_SYSTEM_CALLS_H

#include "kernel_types.h"
#include <bpf/bpf_helpers.h>

#include "registers.h"
#include "waits/wait_argument.h"

#define FUTEX_SYSTEM_CALL 202
#define EPOLL_WAIT_SYSTEM_CALL 232
#define EPOLL_PWAIT_SYSTEM_CALL 281
#define EPOLL_PWAIT2_SYSTEM_CALL 441

/* Returns whether a 64-bit system call waits on an epoll instance. */
static __always_inline bool is_epoll_wait(unsigned long system_call)
{
	return system_call == EPOLL_WAIT_SYSTEM_CALL ||
	       system_call == EPOLL_PWAIT_SYSTEM_CALL ||
	       system_call == EPOLL_PWAIT2_SYSTEM_CALL;
}

/* User registers of a call: from ax to cs, in the order of struct pt_regs. */
struct call_registers {
	u64 result;
	u64 cx;
	u64 third_argument;
	u64 second_argument;
	u64 first_argument;
	u64 system_call;
	u64 ip;
	u64 mode;
};

static __always_inline bool read_call_registers(struct call_registers *call,
						struct pt_regs *regs)
{
	return !bpf_probe_read_kernel(call, sizeof(*call), &regs->ax);
}

/*
 * Returns which resource the arguments of @call name. The kernel's entry sets the
 * result to -ENOSYS before the call, and the call replaces it. A thread on its way back
 * to user space no longer waits for the call's resource. 32-bit code has other numbers.
 */
static __always_inline enum wait_argument
wait_argument(const struct call_registers *call)
{
	const int ENOSYS = 38;

	if (call->ip && !entered_by_syscall(call->system_call))
		return ARGUMENT_FAULT;
	if ((long)call->result != -ENOSYS || is_32_bit(call->mode))
		return ARGUMENT_NONE;
	switch (call->system_call) {
	case 0:	  /* read */
	case 1:	  /* write */
	case 5:	  /* fstat */
	case 8:	  /* lseek */
	case 16:  /* ioctl */
	case 17:  /* pread64 */
	case 18:  /* pwrite64 */
	case 19:  /* readv */
	case 20:  /* writev */
	case 42:  /* connect */
	case 43:  /* accept */
	case 44:  /* sendto */
	case 45:  /* recvfrom */
	case 46:  /* sendmsg */
	case 47:  /* recvmsg */
	case 72:  /* fcntl */
	case 73:  /* flock */
	case 74:  /* fsync */
	case 75:  /* fdatasync */
	case 77:  /* ftruncate */
	case 78:  /* getdents */
	case 187: /* readahead */
	case 217: /* getdents64 */
	case 221: /* fadvise64 */
	case 275: /* splice */
	case 276: /* tee */
	case 277: /* sync_file_range */
	case 285: /* fallocate */
	case 288: /* accept4 */
	case 295: /* preadv */
	case 296: /* pwritev */
	case 299: /* recvmmsg */
	case 306: /* syncfs */
	case 307: /* sendmmsg */
	case 326: /* copy_file_range */
	case 327: /* preadv2 */
	case 328: /* pwritev2 */
		return ARGUMENT_FILE;
	case EPOLL_WAIT_SYSTEM_CALL:
	case EPOLL_PWAIT_SYSTEM_CALL:
	case EPOLL_PWAIT2_SYSTEM_CALL:
		return ARGUMENT_EPOLL;
	case 7:	  /* poll */
	case 23:  /* select */
	case 270: /* pselect6 */
	case 271: /* ppoll */
		return ARGUMENT_POLLED;
	case FUTEX_SYSTEM_CALL:
		return ARGUMENT_FUTEX;
	case 61: /* wait4 */
		return ARGUMENT_CHILD;
	case 247: /* waitid */
		return ARGUMENT_ID_TYPE;
	default:
		return ARGUMENT_NONE;
	}
}

#endif
