/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * User registers of a thread: the role of each register, and the registers from which
 * an unwind starts.
 */
#ifndef SYSTEMSCOPE_REGISTERS_H
#define SYSTEMSCOPE_REGISTERS_H

#include "kernel_types.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/*
 * arch/x86/include/asm/ptrace.h, with the field names of the kernel's own struct. All
 * fields are here because programs copy the struct as a whole.
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

/*
 * Fields of struct pt_regs by role: instruction pointer, stack pointer, frame pointer,
 * and a system call's number, arguments and result.
 */
#define REGS_IP ip
#define REGS_SP sp
#define REGS_FRAME_POINTER bp
#define REGS_SYSTEM_CALL orig_ax
#define REGS_FIRST_ARGUMENT di
#define REGS_SECOND_ARGUMENT si
#define REGS_THIRD_ARGUMENT dx
#define REGS_RESULT ax
/* Holds the mode of the code, for is_32_bit(). */
#define REGS_MODE cs

/*
 * Registers of PHP's execute_ex() (Zend/zend_execute.c): the innermost frame and its
 * instruction, in builds by GCC with global register variables.
 */
#define REGS_PHP_FRAME r14
#define REGS_PHP_INSTRUCTION r15

/*
 * Registers of the code of V8 (src/codegen/x64/register-x64.h): the JSFunction that is
 * called, and the array and the offset of the bytecode that the interpreter runs.
 */
#define REGS_V8_FUNCTION di
#define REGS_V8_BYTECODE r12
#define REGS_V8_OFFSET r9

/* __USER32_CS of arch/x86/include/asm/segment.h: compatibility mode. */
#define USER_CODE_SEGMENT_32 0x23

/*
 * Returns whether a system call entered the kernel. Interrupts and exceptions store -1
 * in place of the number.
 */
static __always_inline bool entered_by_syscall(unsigned long system_call)
{
	return (long)system_call != -1;
}

/*
 * Returns whether a new program has not executed its first instruction. All general
 * registers are then 0, and the system call's number is that of execve: see
 * start_thread().
 */
static __always_inline bool regs_are_of_new_program(struct pt_regs *regs)
{
	return !BPF_CORE_READ(regs, cx);
}

/* Returns whether the code is 32-bit. The words of its stack have half the size. */
static __always_inline bool is_32_bit(unsigned long mode)
{
	return (mode & 0xffff) == USER_CODE_SEGMENT_32;
}

/* Returns a register by its DWARF number (System V ABI for x86-64, figure 3.36). */
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
 * 1 on architectures whose calls leave the return address in a register, REGS_LINK. On
 * x86-64 the return address is on the stack. The compiler then drops the code for a
 * link register, so REGS_LINK may name any register.
 */
#define HAS_LINK_REGISTER 0
#define REGS_LINK ip

#define DWARF_REGISTERS 16

/* Registers from which an unwind in user space starts. */
struct user_registers {
	u64 ip;
	/* Indexed by DWARF number. */
	u64 general[DWARF_REGISTERS];
};

static __always_inline void read_registers(struct user_registers *to,
					   struct pt_regs *regs)
{
	to->ip = BPF_CORE_READ(regs, REGS_IP);
#pragma unroll
	for (u32 number = 0; number < DWARF_REGISTERS; number++)
		to->general[number] = dwarf_register(regs, number);
}

#endif
