/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Hashes of the data that user space has, so that programs send each piece once. */
#ifndef SYSTEMSCOPE_SEEN_STACKS_H
#define SYSTEMSCOPE_SEEN_STACKS_H

#include "kernel_types.h"
#include <bpf/bpf_helpers.h>

/*
 * Hashes whose data user space has, one per slot. If a hash evicts another, programs
 * send the other's data again. The memory is therefore bounded for any number of
 * different stacks.
 */
#define SEEN_SLOTS (1 << 16)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SEEN_SLOTS);
	__type(key, u32);
	__type(value, u64);
} seen_stacks SEC(".maps");

/*
 * Returns the slot in which to note @hash once its data is sent; NULL if user space has
 * the data.
 */
static __always_inline u64 *unseen(u64 hash)
{
	u32 index = hash & (SEEN_SLOTS - 1);
	u64 *slot = bpf_map_lookup_elem(&seen_stacks, &index);

	return slot && *slot != hash ? slot : NULL;
}

#endif
