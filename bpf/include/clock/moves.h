/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Processes that move from one cgroup to another: their threads come to be
 * measured, or no longer are, without an event of their own. When a process
 * moved is noted, and user space is woken, which at once runs find_preexisting
 * for those that have no record yet, and find_departed for those that have one
 * still. Whichever is first after a move, that or an event of the thread's,
 * takes the time from the note.
 *
 * The last move wins: of a process that moves again before it was looked at, it
 * is not known for that moment where it was.
 */
#ifndef SYSTEMSCOPE_MOVES_H
#define SYSTEMSCOPE_MOVES_H

#include "targets/cgroups.h"

/* By process, CLOCK_MONOTONIC ns. What user space has long seen makes room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} moved SEC(".maps");

/* How many moves were noted; user space looks whether it has seen all. */
volatile u64 moves = 0;

/* All threads are what they are to be since the moves up to here; set by user space. */
volatile u64 moves_followed = 0;

/*
 * @now, or when @task's process moved if it was not looked at since. Out of line,
 * as it is rare.
 */
static __noinline u64 moved_by(struct task_struct *task, u64 now)
{
	u64 *noted;
	u32 pid;

	if (!by_membership)
		return now;
	pid = BPF_CORE_READ(task, tgid);
	noted = bpf_map_lookup_elem(&moved, &pid);
	return noted && *noted > moves_followed && *noted < now ? *noted : now;
}

#endif
