/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Tells threads apart whose runtime names them. The kernel's names have 15 bytes, so
 * threads with different names can share one.
 */
#ifndef SYSTEMSCOPE_NAMED_THREADS_H
#define SYSTEMSCOPE_NAMED_THREADS_H

#include "counts.h"
#include "languages/languages.h"
#include "stacks/unwind_tables.h"

/* 1 once user space has found a runtime that names its threads. */
volatile u32 any_named_threads = 0;

/*
 * Returns 1 if a runtime in process @pid names its threads. The function is global and
 * takes a scalar, so the verifier checks it once.
 */
__noinline u32 names_threads(u32 pid)
{
	struct unwind_process *process;

	process = bpf_map_lookup_elem(&unwind_processes, &pid);
	if (!process)
		return 0;
	for (u32 i = 0; i < PROCESS_RUNTIMES; i++) {
		if (process->runtimes[i].language == LANGUAGE_HOTSPOT)
			return 1;
	}
	return 0;
}

/* Returns whether the threads of process @pid have counts of their own. */
static __always_inline bool counts_each_thread(u32 pid)
{
	return per_thread || (any_named_threads && names_threads(pid));
}

#endif
