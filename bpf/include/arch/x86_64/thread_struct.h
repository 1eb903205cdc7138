/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Registers that the kernel stores for a thread while the thread is off the CPU. */
#ifndef SYSTEMSCOPE_THREAD_STRUCT_H
#define SYSTEMSCOPE_THREAD_STRUCT_H

/* arch/x86/include/asm/processor.h */
struct thread_struct {
	unsigned long sp;
	unsigned long fsbase;
} __attribute__((preserve_access_index));

/* Field of a task: the kernel's stack pointer when the task left the CPU. */
#define SAVED_STACK_POINTER thread.sp

/*
 * Field of a task: the base address of the FS segment. It is the value of
 * pthread_self() unless the thread changed FS itself. Offsets of thread-local variables
 * count from it.
 */
#define THREAD_POINTER thread.fsbase

#endif
