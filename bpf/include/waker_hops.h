/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A hop: one waker of a chain of wakers. Each hop is hashed and sent once, like a
 * stack.
 */
#ifndef SYSTEMSCOPE_WAKER_HOPS_H
#define SYSTEMSCOPE_WAKER_HOPS_H

#include "context.h"
#include "counts.h"
#include "stacks/named_threads.h"
#include "stacks/stack_capture.h"

/* Waker IDs that are not hashes. */
enum no_waker {
	WAKER_MISSED,
	WAKER_STILL_BLOCKED,
	/* The command line does not ask for this waker. */
	WAKER_UNWANTED,
};

USER_SPACE_KNOWS(enum, no_waker);

/*
 * Message about a hop. A hop in an interrupt has no task, because the interrupted task
 * did not wake the thread.
 */
struct waker_event {
	u32 kind;
	/* enum context */
	u32 context;
	u64 id;
	u64 user;
	u64 kernel;
	u32 pid;
	u32 tid;
	u8 comm[COMM_LENGTH];
};

USER_SPACE_KNOWS(struct, waker_event);

static __always_inline u64 waker_id(u64 hash)
{
	hash = stack_id(hash);
	return hash > WAKER_UNWANTED ? hash : WAKER_UNWANTED + 1;
}

/* Sends a hop or a chain, charged to the share of the process @payer. */
static __always_inline void send_waker(u64 *slot, void *event, u32 size, u64 id,
				       u32 payer)
{
	if (send(payer, event, size, can_wait()))
		__sync_fetch_and_add(&lost.stack_frames, 1);
	else
		*slot = id;
}

/*
 * Captures the current context, which wakes @sleeper, as a hop and returns its ID. In
 * an interrupt the share of the sleeper's process pays, because the interrupted process
 * did not wake the sleeper. Without @with_stacks the hop is only who woke the sleeper.
 * The function is out of line to keep its event off the stack of sched_waking.
 */
static __noinline u64 capture_waker(void *ctx, struct task_struct *sleeper,
				    enum context context, bool with_stacks)
{
	u32 payer = may_be_task(context) ? bpf_get_current_pid_tgid() >> 32 :
					   sleeper->tgid;
	struct task_struct *task = current_task();
	struct waker_event waker = {
		.kind = EVENT_WAKER,
		.context = context,
	};
	u64 *words = (u64 *)&waker, *slot, hash = 0;

	if (may_be_task(context)) {
		waker.pid = namespace_pid(task);
		waker.tid =
			counts_each_thread(waker.pid) ? namespace_tid(task) : 0;
		bpf_get_current_comm(waker.comm, sizeof(waker.comm));
		/*
		 * User space cannot read the memory of a process outside of its PID
		 * namespace.
		 */
		if (waker.pid && with_stacks)
			waker.user = capture_user_stack(ctx, SCRATCH_HOOK, task,
							process_instance(task),
							waker.pid);
	}
	/*
	 * An interrupt's stack shows which kind of interrupt it is, and the stack of an
	 * unknown context whether it is one.
	 */
	if (context == CONTEXT_UNKNOWN ||
	    (with_stacks && (want_kernel_stacks || context != CONTEXT_TASK)))
		waker.kernel = capture_kernel_stack(ctx, payer, false);

	for (u32 i = 0; i < sizeof(waker) / sizeof(u64); i++)
		hash = hash_word(hash, words[i]);
	waker.id = waker_id(hash);
	slot = unseen(waker.id);
	if (slot)
		send_waker(slot, &waker, sizeof(waker), waker.id, payer);
	return waker.id;
}

#endif
