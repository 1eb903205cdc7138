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
 * Field of a task: the value of pthread_self() in a thread that has not set its segment
 * itself. Pointers to thread-local variables are relative to it.
 */
#define THREAD_POINTER thread.fsbase

#endif
