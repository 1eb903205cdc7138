/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What depends on the processor: where a task's user registers are. */
#ifndef SYSTEMSCOPE_ARCH_H
#define SYSTEMSCOPE_ARCH_H

/* arch/x86/include/asm/ptrace.h, names of the kernel's own struct. */
struct pt_regs {
	unsigned long bp;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long sp;
} __attribute__((preserve_access_index));

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

/* Interrupts and exceptions enter with -1, system calls with their number. */
static __always_inline bool regs_entered_by_syscall(struct pt_regs *regs)
{
	return (long)BPF_CORE_READ(regs, orig_ax) != -1;
}

#endif
