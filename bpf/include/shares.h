/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Fair shares of the ring buffer and of the maps of counts, which all processes use
 * together. A process may take three times as much as it leaves free. No process has a
 * limit before three quarters are used. If N processes take all that they can, each
 * gets 3 / (3 N + 1). The rest, 1 / (3 N + 1), stays free for all other processes.
 *
 * A turn ends when user space empties the buffer or map.
 */
#ifndef SYSTEMSCOPE_SHARES_H
#define SYSTEMSCOPE_SHARES_H

#include "kernel_types.h"
#include <bpf/bpf_helpers.h>
#include "window.h"

/* Usage of one process. Two processes with the same place use one share. */
struct share {
	/* Turn in which the process last took something. */
	u64 turn;
	/* Bytes or keys taken in that turn, and in the turn before. */
	u32 taken;
	u32 taken_before;
	/* Keys without stacks, taken in that turn. */
	u32 without_stacks;
	u32 unused;
};

#define SHARES 4096

struct shares {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SHARES);
	__type(key, u32);
	__type(value, struct share);
};

/*
 * Returns the share of @process in @shares. The place depends on the window's start, so
 * that no process can choose the place of another process.
 */
static __always_inline struct share *find_share(void *shares, u32 process,
						u64 turn)
{
	u32 place = hash_word(window_start, process) & (SHARES - 1);
	struct share *share = bpf_map_lookup_elem(shares, &place);

	if (share && share->turn != turn) {
		share->taken_before = share->turn + 1 == turn ? share->taken :
								0;
		share->taken = 0;
		share->without_stacks = 0;
		share->turn = turn;
	}
	return share;
}

/*
 * Returns whether a process that took @taken units may take more of @all units, @used
 * of which are in use.
 */
static __always_inline bool may_take_more(u64 taken, u64 used, u64 all)
{
	return used < all / 4 * 3 || (used < all && taken / 3 < all - used);
}

#endif
