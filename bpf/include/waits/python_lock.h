/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Who holds the lock that the threads of a CPython interpreter share (GIL):
 * struct _gil_runtime_state of Include/internal/pycore_gil.h, in 3.8 to 3.14. Those
 * who wait for it wait on its condition.
 */
#ifndef SYSTEMSCOPE_PYTHON_LOCK_H
#define SYSTEMSCOPE_PYTHON_LOCK_H

#include "languages/python.h"
#include "stacks/unwind_tables.h"
#include "stacks/user_memory.h"

/* Set by user space with the first interpreter that it finds: others do not pay. */
volatile u32 any_python = false;

/*
 * How far before the word on which threads wait the last holder is. Three words are
 * between it and the condition; in that the word is 40 bytes from the beginning, or 32
 * since glibc 2.41: sysdeps/nptl/bits/thread-shared-types.h.
 */
#define HOLDER_BEFORE_WORD 64
#define HOLDERS 2

/* struct pthread of glibc's nptl/descr.h: its own address, and the thread's ID. */
#define PTHREAD_SELF 0x10
#define PTHREAD_TID 0x2d0

/* The ID of the thread whose PyThreadState is at @state; 0 if there is none. */
static __always_inline u32 python_thread_id(struct python_layout *layout,
					    u64 state)
{
	u64 thread, self;
	u32 tid;

	if (!state || state % sizeof(u64) ||
	    !read_user(&thread, sizeof(thread), state + layout->thread_id) ||
	    !read_user(&self, sizeof(self), thread + PTHREAD_SELF) ||
	    self != thread ||
	    !read_user(&tid, sizeof(tid), thread + PTHREAD_TID))
		return 0;
	return tid;
}

/*
 * The thread that holds the lock on whose condition the current one waits, by the
 * address of the futex; 0 if it is no such lock's. Global, and so with scalars only.
 */
__noinline u32 python_lock_holder(u32 pid, u64 futex)
{
	struct unwind_process *process;
	struct python_layout *layout;
	u64 states[HOLDERS];
	u32 holder;

	process = bpf_map_lookup_elem(&unwind_processes, &pid);
	if (!process || !process->python_runtime)
		return 0;
	layout = find_python_layout(process->python_layout);
	if (!layout || !read_user(states, sizeof(states),
				  (futex & -sizeof(u64)) - HOLDER_BEFORE_WORD))
		return 0;
	holder = python_thread_id(layout, states[0]);
	return holder ? holder : python_thread_id(layout, states[1]);
}

#endif
