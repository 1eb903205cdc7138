/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Layout of a thread's kernel stack. The user registers are at its top. The registers
 * that a switch saves are at the lowest address in use. An interrupt of kernel code
 * saves registers between them.
 */
#ifndef SYSTEMSCOPE_KERNEL_STACK_H
#define SYSTEMSCOPE_KERNEL_STACK_H

#include "kernel_types.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "registers.h"

/* THREAD_SIZE of arch/x86/include/asm/page_64_types.h, without KASAN. */
#define THREAD_SIZE (4096UL << 2)

/*
 * Returns the address of the user registers, for kernels before 5.15, which have no
 * helper for that. In these kernels the registers end exactly at the top of the kernel
 * stack. The padding for FRED came later.
 */
static __always_inline struct pt_regs *regs_at_stack_top(void *stack)
{
	return (struct pt_regs *)(stack + THREAD_SIZE -
				  bpf_core_type_size(struct pt_regs));
}

/*
 * User registers as words in the kernel's order: the number of words up to the ip, and
 * the indexes of the system call's number and of the ip.
 */
#define MAX_USER_REGISTERS 17
#define SYSTEM_CALL_REGISTER 15
#define IP_REGISTER 16

/*
 * Words from the saved stack pointer of a switched-out task to its return address: six
 * registers lie between, struct inactive_task_frame of
 * arch/x86/include/asm/switch_to.h.
 */
#define SWITCH_RETURN_ADDRESS 6

/* Words from a saved ip to the code segment and to the stack segment. */
#define CS_BEHIND_IP 1
#define SS_BEHIND_IP 4

/* __KERNEL_CS and __KERNEL_DS of arch/x86/include/asm/segment.h. */
#define KERNEL_CODE_SEGMENT 0x10
#define KERNEL_DATA_SEGMENT 0x18

/*
 * Returns whether the word at @offset of a kernel stack may be the ip of interrupted
 * kernel code. SS_BEHIND_IP more @words must be readable. This is a macro because the
 * compiler makes more code from a pointer into the stack.
 */
#define may_be_saved_ip(words, offset)                                         \
	(((words)[(offset) + CS_BEHIND_IP] & 0xffff) == KERNEL_CODE_SEGMENT && \
	 ((words)[(offset) + SS_BEHIND_IP] & 0xffff) == KERNEL_DATA_SEGMENT)

#endif
