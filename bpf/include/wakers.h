/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Chains of wakers: the waker, the waker of that waker, and so on. A chain of several
 * hops is hashed and sent once, as hops are.
 */
#ifndef SYSTEMSCOPE_WAKERS_H
#define SYSTEMSCOPE_WAKERS_H

#include "waker_hops.h"

#define MAX_HOPS 8

struct waker_chain_event {
	u32 kind;
	u32 hop_count;
	u64 id;
	u64 hops[MAX_HOPS];
};

USER_SPACE_KNOWS(struct, waker_chain_event);

/* End of a thread's last wait. */
struct wake {
	/* ID of the waker or of the chain under which the wait counts. */
	u64 waker;
	u64 hops[MAX_HOPS];
	u32 hop_count;
	u32 unused;
};

/* Maximum hops to follow, 1 to MAX_HOPS. */
const volatile u32 chain_length = 1;

const volatile bool filter_waker_pids = false;
const volatile bool filter_waker_tids = false;

/* IDs of the wanted wakers, in the same format as the targets in filter.h. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} waker_pids SEC(".maps"), waker_tids SEC(".maps");

static __always_inline bool any_waker_is_wanted(void)
{
	return !filter_waker_pids && !filter_waker_tids;
}

static __always_inline bool waker_is_wanted(enum context context)
{
	u64 ids = bpf_get_current_pid_tgid();
	u32 pid = ids >> 32, tid = ids;

	if (any_waker_is_wanted())
		return true;
	if (!may_be_task(context))
		return false;
	if (filter_waker_pids && bpf_map_lookup_elem(&waker_pids, &pid))
		return true;
	return filter_waker_tids && bpf_map_lookup_elem(&waker_tids, &tid);
}

/*
 * Sends the chain of @wake's hops and returns its ID. The function is out of line to
 * keep its event off the stack of its callers.
 */
static __noinline u64 publish_chain(struct wake *wake)
{
	struct waker_chain_event chain = {
		.kind = EVENT_WAKER_CHAIN,
		.hop_count = wake->hop_count,
	};
	u64 *slot, hash = wake->hop_count;

	__builtin_memcpy(chain.hops, wake->hops, sizeof(chain.hops));
	for (u32 i = 0; i < MAX_HOPS; i++) {
		if (i >= wake->hop_count)
			break;
		hash = hash_word(hash, wake->hops[i]);
	}
	chain.id = waker_id(hash);
	slot = unseen(chain.id);
	if (slot)
		send_waker(slot, &chain, sizeof(chain), chain.id,
			   bpf_get_current_pid_tgid() >> 32);
	return chain.id;
}

/* Stores the hop @waker in @wake, followed by the hops of the waker's own last wait. */
static __always_inline void follow_chain(struct wake *wake, u64 waker,
					 struct wake *before)
{
	u32 count = 1;

	wake->hops[0] = waker;
	for (u32 i = 1; i < MAX_HOPS; i++) {
		if (!before || i >= chain_length || i > before->hop_count)
			break;
		wake->hops[i] = before->hops[i - 1];
		count = i + 1;
	}
	wake->hop_count = count;
}

#endif
