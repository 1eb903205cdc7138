/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Moves of processes between cgroups. A move can start or end the measurement of
 * threads without an event of their own. A program notes the time of the move and wakes
 * user space. User space then immediately runs find_preexisting for threads without a
 * record, and find_departed for threads that still have a record. The first event after
 * a move takes the time from the note. This event is a visit of an iterator or an event
 * of the thread.
 *
 * If a process moves twice before user space has looked, the last move wins. Its cgroup
 * in between is not known.
 */
#ifndef SYSTEMSCOPE_MOVES_H
#define SYSTEMSCOPE_MOVES_H

#include "targets/cgroups.h"

/*
 * Time of the last move by process, in ns of CLOCK_MONOTONIC. The map first evicts
 * moves that user space has long handled.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} moved SEC(".maps");

/* Number of moves noted; user space compares it with the number that it has handled. */
volatile u64 moves = 0;

/*
 * Time up to which the records reflect all moves, in ns of CLOCK_MONOTONIC; set by user
 * space.
 */
volatile u64 moves_followed = 0;

/*
 * Returns the time at which @task's process moved if user space has not handled that
 * move yet, else @now. The function is out of line because calls are rare.
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
