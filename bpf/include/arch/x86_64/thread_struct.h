/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Registers that the kernel keeps of a thread while the thread is off the CPU. */
#ifndef SYSTEMSCOPE_THREAD_STRUCT_H
#define SYSTEMSCOPE_THREAD_STRUCT_H

/* arch/x86/include/asm/processor.h */
struct thread_struct {
	unsigned long sp;
	unsigned long fsbase;
} __attribute__((preserve_access_index));

/* From a task: the kernel's stack pointer when the task left the CPU. */
#define SAVED_STACK_POINTER thread.sp

/*
 * From a task: what pthread_self() is in a thread that has not set its segment itself.
 * Pointers to what is local to the thread are relative to that.
 */
#define THREAD_POINTER thread.fsbase

#endif
