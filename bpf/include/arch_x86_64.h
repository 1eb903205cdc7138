/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What depends on the processor: where a task's user registers are, which of
 * them a walk starts from, and what its frames look like in memory.
 */
#ifndef SYSTEMSCOPE_ARCH_H
#define SYSTEMSCOPE_ARCH_H

/*
 * arch/x86/include/asm/ptrace.h, names of the kernel's own struct: all of it, as it
 * is copied as a whole.
 */
struct pt_regs {
	unsigned long r15;
	unsigned long r14;
	unsigned long r13;
	unsigned long r12;
	unsigned long bp;
	unsigned long bx;
	unsigned long r11;
	unsigned long r10;
	unsigned long r9;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs;
	unsigned long flags;
	unsigned long sp;
	unsigned long ss;
} __attribute__((preserve_access_index));

/* THREAD_SIZE of arch/x86/include/asm/page_64_types.h, without KASAN. */
#define THREAD_SIZE (4096UL << 2)

/* __USER32_CS of arch/x86/include/asm/segment.h: compatibility mode. */
#define USER_CODE_SEGMENT_32 0x23

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
static __always_inline bool entered_by_syscall(unsigned long orig_ax)
{
	return (long)orig_ax != -1;
}

/*
 * Before the first instruction of a program that was just executed, the number is
 * that of execve, and all other registers are 0 (start_thread()).
 */
static __always_inline bool regs_are_of_new_program(struct pt_regs *regs)
{
	return !BPF_CORE_READ(regs, cx);
}

/* The stacks of 32-bit code have words of half the size. */
static __always_inline bool is_32_bit(unsigned long cs)
{
	return (cs & 0xffff) == USER_CODE_SEGMENT_32;
}

/* A register by its DWARF number (System V ABI for x86-64, figure 3.36). */
static __always_inline u64 dwarf_register(struct pt_regs *regs, u32 number)
{
	switch (number) {
	case 0:
		return BPF_CORE_READ(regs, ax);
	case 1:
		return BPF_CORE_READ(regs, dx);
	case 2:
		return BPF_CORE_READ(regs, cx);
	case 3:
		return BPF_CORE_READ(regs, bx);
	case 4:
		return BPF_CORE_READ(regs, si);
	case 5:
		return BPF_CORE_READ(regs, di);
	case 6:
		return BPF_CORE_READ(regs, bp);
	case 7:
		return BPF_CORE_READ(regs, sp);
	case 8:
		return BPF_CORE_READ(regs, r8);
	case 9:
		return BPF_CORE_READ(regs, r9);
	case 10:
		return BPF_CORE_READ(regs, r10);
	case 11:
		return BPF_CORE_READ(regs, r11);
	case 12:
		return BPF_CORE_READ(regs, r12);
	case 13:
		return BPF_CORE_READ(regs, r13);
	case 14:
		return BPF_CORE_READ(regs, r14);
	case 15:
		return BPF_CORE_READ(regs, r15);
	default:
		return 0;
	}
}

/*
 * What pthread_self() is in a thread that has not set its segment itself. Pointers
 * to what is local to the thread are relative to that.
 */
#define THREAD_POINTER thread.fsbase

#define DWARF_REGISTERS 16

/* What a walk starts from, for user space. */
struct user_registers {
	u64 ip;
	/* By DWARF number. */
	u64 general[DWARF_REGISTERS];
};

static __always_inline void read_registers(struct user_registers *to,
					   struct pt_regs *regs)
{
	to->ip = BPF_CORE_READ(regs, ip);
#pragma unroll
	for (u32 number = 0; number < DWARF_REGISTERS; number++)
		to->general[number] = dwarf_register(regs, number);
}

/*
 * Of the user registers in the kernel's order, which are words: how many there are
 * up to the ip, and where the number of the system call is and the ip.
 */
#define MOST_USER_REGISTERS 17
#define SYSTEM_CALL_REGISTER 15
#define IP_REGISTER 16

/* From a saved ip, where the code segment is and the stack segment, in words. */
#define CS_BEHIND_IP 1
#define SS_BEHIND_IP 4

/* __KERNEL_CS and __KERNEL_DS of arch/x86/include/asm/segment.h. */
#define KERNEL_CODE_SEGMENT 0x10
#define KERNEL_DATA_SEGMENT 0x18

/*
 * Where the saved stack pointer of a task that was switched out leads to has
 * its return address behind six registers, struct inactive_task_frame of
 * arch/x86/include/asm/switch_to.h. In words.
 */
#define SWITCH_RETURN_ADDRESS 6

/* Where a function's return address is, from its canonical frame address. */
#define RETURN_ADDRESS_AT_CFA (-8)

/*
 * Registers in struct sigcontext_64 (arch/x86/include/uapi/asm/sigcontext.h),
 * which a signal frame holds.
 */
#define SIGNAL_FRAME_BP 80
#define SIGNAL_FRAME_SP 120
#define SIGNAL_FRAME_IP 128

/* An entry of the procedure linkage table has pushed its number from @pushed. */
static __always_inline u64 cfa_in_plt(u64 sp, u64 ip, u32 pushed)
{
	return sp + 8 + ((ip & 15) >= pushed ? 8 : 0);
}

#endif
