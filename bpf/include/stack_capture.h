/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A stack is captured once: its frames are hashed, the hash is what is
 * counted, and the frames go to user space the first time it is seen.
 */
#ifndef SYSTEMSCOPE_STACK_CAPTURE_H
#define SYSTEMSCOPE_STACK_CAPTURE_H

#include "events.h"
#include "task.h"

const volatile bool want_user_stacks = true;
const volatile bool want_kernel_stacks = true;

/*
 * Hashes whose frames user space has, one per slot. A hash that pushes
 * another out only causes that one's frames to be sent again, so the memory
 * is bounded and the number of different stacks is not.
 */
#define SEEN_SLOTS (1 << 16)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SEEN_SLOTS);
	__type(key, u32);
	__type(value, u64);
} seen_stacks SEC(".maps");

/*
 * Room for one stack under construction per CPU and context: scheduler hooks
 * and samples run one at a time on a CPU; a task iterator can be preempted by
 * them and has room of its own.
 */
enum scratch {
	SCRATCH_HOOK,
	SCRATCH_ITERATOR,
	SCRATCH_KINDS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_KINDS);
	__type(key, u32);
	__type(value, struct stack_event);
} stack_scratch SEC(".maps");

static __always_inline struct stack_event *stack_room(u32 kind)
{
	u32 slot = kind;

	return bpf_map_lookup_elem(&stack_scratch, &slot);
}

/* Multiply and fold, a word at a time; the top bit is left to SEEDED ids. */
static __always_inline u64 hash_word(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9fb21c651e98df25ULL;
	return hash ^ (hash >> 29);
}

/*
 * Names the stack whose frames, @bytes of them, are in the room of @kind, and
 * hands it to user space if it may be new there. Returns its hash.
 *
 * Global, and so with scalars only: the verifier looks at it once, and not at
 * its loop again for every path that leads here.
 */
__noinline u64 publish_stack(u32 kind, int bytes)
{
	struct stack_event *event = stack_room(kind);
	u64 hash, *slot;
	u32 depth, index;

	if (!event || bytes <= 0)
		return STACK_MISSED;

	depth = bytes / sizeof(u64);
	if (depth > STACK_DEPTH)
		depth = STACK_DEPTH;

	hash = hash_word(event->instance, event->leaf_is_exact);
	for (u32 i = 0; i < STACK_DEPTH; i++) {
		if (i >= depth)
			break;
		hash = hash_word(hash, event->frames[i]);
	}
	hash = hash_word(hash, depth) & ~STACK_SEEDED;
	if (hash <= STACK_MISSED)
		hash = STACK_MISSED + 1;

	index = hash & (SEEN_SLOTS - 1);
	slot = bpf_map_lookup_elem(&seen_stacks, &index);
	if (!slot || *slot == hash)
		return hash;

	event->kind = EVENT_STACK;
	event->depth = depth;
	event->hash = hash;
	if (bpf_ringbuf_output(&events, event,
			       STACK_EVENT_HEADER + depth * sizeof(u64), 0))
		__sync_fetch_and_add(&lost.stack_frames, 1);
	else
		*slot = hash;
	return hash;
}

/*
 * The user stack of the current task, by frame pointers. @instance and @pid
 * say whose addresses these are.
 */
static __always_inline u64 capture_user_stack(void *ctx,
					      struct task_struct *task,
					      u64 instance, u32 pid)
{
	struct stack_event *event;
	struct pt_regs *regs;

	if (!want_user_stacks || is_kernel_thread(task) ||
	    !BPF_CORE_READ(task, mm))
		return STACK_NONE;
	event = stack_room(SCRATCH_HOOK);
	if (!event)
		return STACK_MISSED;

	regs = current_user_regs();
	event->pid = pid;
	event->instance = instance;
	event->leaf_is_exact = !regs_entered_by_syscall(regs);
	return publish_stack(SCRATCH_HOOK, bpf_get_stack(ctx, event->frames,
							 sizeof(event->frames),
							 BPF_F_USER_STACK));
}

static __always_inline void prepare_kernel_stack(struct stack_event *event,
						 bool leaf_is_exact)
{
	event->pid = 0;
	event->instance = 0;
	event->leaf_is_exact = leaf_is_exact;
}

/* The kernel stack on which a task that is not running was switched out. */
static __always_inline u64 capture_saved_kernel_stack(struct task_struct *task,
						      enum scratch kind)
{
	struct stack_event *event;

	if (!want_kernel_stacks)
		return STACK_NONE;
	event = stack_room(kind);
	/* The stack of a task that is already running again is another one. */
	if (!event || (u64)task == bpf_get_current_task())
		return STACK_MISSED;

	prepare_kernel_stack(event, false);
	return publish_stack(kind,
			     bpf_get_task_stack(task, event->frames,
						sizeof(event->frames), 0));
}

#endif
