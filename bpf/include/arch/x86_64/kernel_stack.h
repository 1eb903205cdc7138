/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Layout of a thread's kernel stack: the user registers at its top, what a
 * switch saves at its bottom, and what an interrupt of kernel code saves between them.
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
 * Kernels before 5.15 have no helper for a task's user registers. There they
 * end exactly at the top of the kernel stack: the padding that FRED brought
 * came later.
 */
static __always_inline struct pt_regs *regs_at_stack_top(void *stack)
{
	return (struct pt_regs *)(stack + THREAD_SIZE -
				  bpf_core_type_size(struct pt_regs));
}

/*
 * The user registers in the kernel's order, as words: their number up to the ip, and the
 * indexes of the system call's number and of the ip.
 */
#define MOST_USER_REGISTERS 17
#define SYSTEM_CALL_REGISTER 15
#define IP_REGISTER 16

/*
 * Words from the saved stack pointer of a task that was switched out to its return
 * address: six registers lie between, struct inactive_task_frame of
 * arch/x86/include/asm/switch_to.h.
 */
#define SWITCH_RETURN_ADDRESS 6

/* From a saved ip, where the code segment is and the stack segment, in words. */
#define CS_BEHIND_IP 1
#define SS_BEHIND_IP 4

/* __KERNEL_CS and __KERNEL_DS of arch/x86/include/asm/segment.h. */
#define KERNEL_CODE_SEGMENT 0x10
#define KERNEL_DATA_SEGMENT 0x18

/*
 * Whether the word at @offset of a kernel stack may be the ip of kernel code that was
 * interrupted; SS_BEHIND_IP more @words can be read. A macro: by a pointer into the stack
 * the compiler makes more of it.
 */
#define may_be_saved_ip(words, offset)                                         \
	(((words)[(offset) + CS_BEHIND_IP] & 0xffff) == KERNEL_CODE_SEGMENT && \
	 ((words)[(offset) + SS_BEHIND_IP] & 0xffff) == KERNEL_DATA_SEGMENT)

#endif
