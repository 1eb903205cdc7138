/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Finds the holder of the lock that all threads of a language's runtime share. */
#ifndef SYSTEMSCOPE_LANGUAGE_LOCKS_H
#define SYSTEMSCOPE_LANGUAGE_LOCKS_H

#include "languages/languages.h"
#include "stacks/named_threads.h"
#include "stacks/unwind_tables.h"

/*
 * 1 once user space has found a runtime. Programs save the lookup as long as there is
 * none.
 */
volatile u32 any_runtime = false;

/* Returns the layout of a runtime; NULL behind the last runtime of a process. */
static __always_inline struct language_layout *
runtime_layout(struct language_runtime *runtime)
{
	return runtime->language ? find_layout(runtime->layout) : NULL;
}

/*
 * Returns the ID of the thread that holds the runtime's lock, if @futex belongs to that
 * lock; else 0. The function is global and takes scalars, so the verifier checks it
 * once.
 */
__noinline u32 language_lock_holder(u32 pid, u64 futex)
{
	struct language_runtime *runtime;
	struct unwind_process *process;
	struct language_layout *layout;
	u32 holder;

	process = bpf_map_lookup_elem(&unwind_processes, &pid);
	if (!process)
		return 0;
	for (u32 i = 0; i < PROCESS_RUNTIMES; i++) {
		runtime = &process->runtimes[i];
		layout = runtime_layout(runtime);
		if (!layout)
			break;
		holder = lock_holder_in(runtime->language, layout,
					runtime->base, futex);
		if (holder)
			return holder;
	}
	return 0;
}

/*
 * Returns the class of the object on which the current thread of process @pid waits; 0
 * if unknown.
 */
__noinline u64 language_lock_class(u32 pid)
{
	struct language_runtime *runtime;
	struct unwind_process *process;
	struct language_layout *layout;
	u64 class;

	process = bpf_map_lookup_elem(&unwind_processes, &pid);
	if (!process)
		return 0;
	for (u32 i = 0; i < PROCESS_RUNTIMES; i++) {
		runtime = &process->runtimes[i];
		layout = runtime_layout(runtime);
		if (!layout)
			break;
		class = lock_class_in(runtime->language, layout);
		if (class)
			return class;
	}
	return 0;
}

#endif
