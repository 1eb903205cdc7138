/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A stack is captured once: its frames are hashed, the hash is what is
 * counted, and the frames go to user space the first time it is seen.
 */
#ifndef SYSTEMSCOPE_STACK_CAPTURE_H
#define SYSTEMSCOPE_STACK_CAPTURE_H

#include "events.h"
#include "stacks/kernel_stack_cache.h"
#include "stacks/mixed_stacks.h"
#include "stacks/seen_stacks.h"
#include "stacks/stack_dump.h"
#include "task.h"
#include "stacks/unwind.h"

const volatile bool want_user_stacks = true;
const volatile bool want_kernel_stacks = true;
/* The most frames of a user stack that the kernel's helpers give. */
const volatile u32 helper_stack_depth = KERNEL_STACK_DEPTH;
/*
 * For checks: every stack is walked here, and sent as a dump, too; whether it
 * could have been cached, and as what, is counted.
 */
const volatile bool dump_every_stack = false;
volatile u64 cache_hits_right = 0;
volatile u64 cache_hits_wrong = 0;
/*
 * For checks: every kernel stack is unwound; whether it was cached, and as what,
 * is counted.
 */
const volatile bool unwind_every_kernel_stack = false;
volatile u64 kernel_cache_hits_right = 0;
volatile u64 kernel_cache_hits_wrong = 0;
volatile u64 kernel_cache_misses = 0;

/* @hash with some frames in the room of @kind, from @first on, of @depth in all. */
__noinline u64 hash_frames(u32 kind, u64 hash, u32 first, u32 depth)
{
	struct stack_scratch *room = scratch_room(kind);

	if (!room)
		return hash;
	for (u32 i = 0; i < FRAMES_AT_ONCE; i++) {
		if (first + i >= depth)
			break;
		hash = hash_word(hash,
				 room->event.frames[frame_index(first + i)]);
	}
	return hash;
}

/*
 * Names the stack whose frames, @bytes of them, are in the room of @kind, and
 * hands it to user space if it may be new there. Returns its ID, or STACK_MISSED if there
 * was no room for it.
 *
 * Global, and so with scalars only: the verifier looks at it once, and not at
 * its loop again for every path that leads here.
 */
__noinline u64 publish_stack(u32 kind, int bytes)
{
	struct stack_scratch *room = scratch_room(kind);
	struct stack_event *event;
	u64 hash, *slot;
	u32 depth, size;

	if (!room || bytes <= 0)
		return STACK_MISSED;
	event = &room->event;

	depth = bytes / sizeof(u64);
	if (depth > STACK_DEPTH)
		depth = STACK_DEPTH;

	hash = hash_word(hash_word(0, event->instance),
			 (u64)event->walk_end << 32 | event->leaf_is_exact);
	for (u32 first = 0; first < STACK_DEPTH; first += FRAMES_AT_ONCE) {
		if (first >= depth)
			break;
		hash = hash_frames(kind, hash, first, depth);
	}
	hash = stack_id(hash_word(hash, depth));

	event->hash = hash;
	slot = unseen(hash);
	if (!slot)
		return hash;

	event->kind = EVENT_STACK;
	event->depth = depth;
	size = STACK_EVENT_HEADER + depth * sizeof(u64);
	if (send(event->payer, event, size, can_wait())) {
		__sync_fetch_and_add(&lost.stack_frames, 1);
		return STACK_MISSED;
	}
	*slot = hash;
	return hash;
}

/* What a walk goes by. */
struct walk_tables {
	u64 mappings;
	u64 generation;
};

/*
 * The process that the stack in @room is of, and its @tables; NULL if there are
 * none yet.
 */
static __always_inline struct unwind_process *
find_process(struct stack_scratch *room, struct walk_tables *tables)
{
	struct stack_event *event = &room->event;
	struct unwind_process *process;
	u32 pid = event->pid;

	process = bpf_map_lookup_elem(&unwind_processes, &pid);
	if (!process || process->instance != event->instance)
		return NULL;
	tables->generation = *(volatile u64 *)&process->generation;
	tables->mappings = *(volatile u64 *)&process->mappings;
	room->chain.hash = 0;
	for (u32 i = 0; i < PROCESS_RUNTIMES; i++)
		room->runtimes[i] = process->runtimes[i];
	/* The entry may have become another process's in between. */
	barrier();
	return process->instance == event->instance ? process : NULL;
}

/* Whether user space knows the process and has made its tables. */
static __always_inline bool has_tables(u32 pid, u64 instance)
{
	struct unwind_process *process;

	process = bpf_map_lookup_elem(&unwind_processes, &pid);
	return process && process->instance == instance;
}

/*
 * Of a process that was forked and is yet unknown: its parent's, and from here
 * on it is the parent's addresses that the stack is made of.
 */
static __always_inline struct unwind_process *
find_forks_process(struct stack_scratch *room, struct task_struct *task,
		   struct walk_tables *tables)
{
	struct stack_event *event = &room->event;
	struct task_struct *parent = fork_of_same_code(task);
	struct unwind_process *process;
	u64 instance = event->instance;
	u32 pid = event->pid;

	if (!parent)
		return NULL;
	event->pid = namespace_pid(parent);
	event->instance = process_instance(parent);
	process = find_process(room, tables);
	if (!process) {
		event->pid = pid;
		event->instance = instance;
	}
	return process;
}

/* Whether there is more or less code than when the mappings were last used: @pages. */
static __always_inline bool code_changed(struct unwind_process *process,
					 u64 pages)
{
	u64 before = process->code_pages;

	if (pages == before)
		return false;
	process->code_pages = pages;
	return before;
}

/* Asks for the mappings to be read again. */
static __always_inline void report_code_change(struct stack_event *event)
{
	struct code_changed changed = {
		.kind = EVENT_CODE_CHANGED,
		.pid = event->pid,
		.instance = event->instance,
	};

	send(event->payer, &changed, sizeof(changed), can_wait());
}

/* Starts a walk where its registers were. */
static __always_inline void start_walk(struct walk *walk, bool exact)
{
	walk->ip = walk->registers.REGS_IP;
	walk->sp = walk->registers.REGS_SP;
	walk->bp = walk->registers.REGS_FRAME_POINTER;
	walk->at_leaf = true;
	walk->ip_is_exact = exact;
	walk->by_frame_pointer = false;
	walk->depth = 0;
	walk->mapping.start = 0;
	walk->mapping.end = 0;
	walk->trampoline = uretprobe_trampoline(current_task());
}

static __always_inline void check_cache_hit(u64 cached, u64 walked)
{
	if (cached == walked)
		__sync_fetch_and_add(&cache_hits_right, 1);
	else if (cached)
		__sync_fetch_and_add(&cache_hits_wrong, 1);
}

/*
 * A dump with the frames of a runtime in the room of @kind, which user space places
 * once it has walked that. Returns its ID, or STACK_MISSED.
 */
static __always_inline u64 dump_mixed_stack(struct stack_scratch *room,
					    u32 kind)
{
	u64 id = dump_stack(room, kind);

	if (room->chain.hash && id != STACK_MISSED) {
		publish_functions(kind);
		room->walk.depth = 0;
		send_mixed_stack(kind, id, id);
	}
	return id;
}

/*
 * The user stack of the current task by the tables, from what is in the room of
 * @kind. Returns its ID, or STACK_NONE if nothing is known of the process: then
 * others must try. Global, for the verifier's sake: see unwind_frame().
 */
__noinline u64 walk_by_tables(u32 kind)
{
	struct stack_scratch *room = scratch_room(kind);
	struct task_struct *task = current_task();
	u64 pages = read_task(untrusted(task), mm, exec_vm);
	struct unwind_process *process;
	struct walk_tables tables;
	struct stack_event *event;
	u64 id, cached = 0;
	struct walk *walk;
	bool exact;
	int end;

	if (!room)
		return STACK_MISSED;
	event = &room->event;
	walk = &room->walk;
	exact = event->leaf_is_exact;
	start_walk(walk, exact);
	process = find_process(room, &tables);
	if (!process)
		process = find_forks_process(room, task, &tables);
	if (!process) {
		id = dump_stack(room, kind);
		return id == STACK_MISSED ? STACK_NONE : id;
	}
	if (room->runtimes[0].language)
		walk_chain(kind, thread_pointer(task));
	if (code_changed(process, pages)) {
		/* Another file may be where the mappings have one. */
		id = dump_mixed_stack(room, kind);
		if (id != STACK_MISSED)
			return id;
		report_code_change(event);
	}
	/* Threads block where they did before; they are interrupted anywhere. */
	walk->notes.complete = false;
	if (!exact) {
		struct walk_start from = {
			.instance = event->instance,
			.generation = tables.generation,
			.ip = walk->ip,
			.sp = walk->sp,
			.bp = walk->bp,
		};

		cached = look_up_walk(&walk->notes, &from);
		if (cached && !unseen(cached) && !dump_every_stack) {
			id = mixed_stack_id(room, cached);
			if (!unseen(id))
				return id;
		}
		begin_notes(&walk->notes, &from);
	}
	walk->first_mapping = (u32)tables.mappings;
	walk->mapping_count = tables.mappings >> 32;
	end = unwind_stack(room, kind);

	if ((end & 0xff) == WALK_NO_MAPPING || dump_every_stack) {
		u32 depth = walk->depth;

		/* The dump starts where the walk did. */
		start_walk(walk, exact);
		walk->depth = depth;
	}
	if ((end & 0xff) == WALK_NO_MAPPING) {
		id = dump_mixed_stack(room, kind);
		if (id != STACK_MISSED)
			return id;
	}
	event->walk_end = end;
	id = publish_stack(kind, walk->depth * sizeof(u64));
	if ((end & 0xff) == WALK_REACHED_ROOT && id != STACK_MISSED)
		cache_walk(&walk->notes, id);
	if (dump_every_stack) {
		check_cache_hit(cached, id);
		send_stack_dump(kind, false);
	}
	if (!room->chain.hash || id == STACK_MISSED)
		return id;
	return publish_mixed_stack(kind, id);
}

/*
 * The user stack of the current task. @instance and @pid say whose addresses
 * these are, and @kind where the stack is made.
 */
static __always_inline u64 capture_user_stack(void *ctx, enum scratch kind,
					      struct task_struct *task,
					      u64 instance, u32 pid)
{
	struct stack_scratch *room;
	struct stack_event *event;
	struct pt_regs *regs;
	u64 id;
	int bytes;

	if (!want_user_stacks || is_kernel_thread(task) ||
	    !read_task(untrusted(task), mm))
		return STACK_NONE;
	room = scratch_room(kind);
	if (!room)
		return STACK_MISSED;
	event = &room->event;

	/* At once: what they are worth is asked for several of them. */
	regs = &room->walk.registers;
	if (bpf_probe_read_kernel(regs, sizeof(*regs), current_user_regs()))
		return STACK_MISSED;
	/* See has_no_user_stack(). */
	if (!regs->REGS_IP && !regs->REGS_SP)
		return STACK_NONE;
	event->pid = pid;
	event->payer = bpf_get_current_pid_tgid() >> 32;
	event->instance = instance;
	event->leaf_is_exact = !entered_by_syscall(regs->REGS_SYSTEM_CALL);
	event->walk_end = WALK_NOT_KNOWN;
	if (call_graph != CALL_GRAPH_FP && is_32_bit(regs->REGS_MODE)) {
		event->frames[0] = regs->REGS_IP;
		event->walk_end = WALK_32_BIT;
		return publish_stack(kind, sizeof(u64));
	}
	if (call_graph != CALL_GRAPH_FP) {
		id = walk_by_tables(kind);
		if (id != STACK_NONE)
			return id;
		event->walk_end = WALK_NO_MAPPING | WALK_BY_FRAME_POINTER;
	}
	bytes = bpf_get_stack(ctx, event->frames, sizeof(event->frames),
			      BPF_F_USER_STACK);
	if (bytes >= (int)(helper_stack_depth * sizeof(u64))) {
		bytes = helper_stack_depth * sizeof(u64);
		if (call_graph != CALL_GRAPH_FP)
			event->walk_end = WALK_TOO_DEEP | WALK_BY_FRAME_POINTER;
	}
	if (call_graph == CALL_GRAPH_DWARF && bytes > (int)sizeof(u64))
		bytes = sizeof(u64);
	return publish_stack(kind, bytes);
}

#define KERNEL_STACK_BYTES (KERNEL_STACK_DEPTH * sizeof(u64))

static __always_inline void prepare_kernel_stack(struct stack_event *event,
						 u32 payer, bool leaf_is_exact)
{
	event->pid = 0;
	event->payer = payer;
	event->instance = 0;
	event->leaf_is_exact = leaf_is_exact;
	event->walk_end = WALK_NOT_KNOWN;
}

/*
 * The kernel stack of the current context, or STACK_NONE if there is none, as
 * where a sample interrupts user space. It counts to the share of the process @payer.
 * @leaf_is_exact: of a sample, not of a tracepoint.
 */
static __always_inline u64 capture_kernel_stack(void *ctx, u32 payer,
						bool leaf_is_exact)
{
	struct stack_scratch *room = scratch_room(SCRATCH_HOOK);
	int bytes;

	if (!room)
		return STACK_MISSED;
	prepare_kernel_stack(&room->event, payer, leaf_is_exact);
	bytes = bpf_get_stack(ctx, room->event.frames, KERNEL_STACK_BYTES, 0);
	return bytes ? publish_stack(SCRATCH_HOOK, bytes) : STACK_NONE;
}

static __always_inline void check_kernel_cache_hit(u64 cached, u64 unwound)
{
	if (cached == unwound)
		__sync_fetch_and_add(&kernel_cache_hits_right, 1);
	else if (cached)
		__sync_fetch_and_add(&kernel_cache_hits_wrong, 1);
	else
		__sync_fetch_and_add(&kernel_cache_misses, 1);
}

/* The kernel stack on which a task that is not running was switched out. */
static __always_inline u64 capture_saved_kernel_stack(struct task_struct *task,
						      enum scratch kind)
{
	/* A task that is looked at by an iterator may begin to run meanwhile. */
	bool may_be_cached = kind == SCRATCH_HOOK;
	struct stack_scratch *room;
	u64 id, cached = 0;
	long bytes;

	if (!want_kernel_stacks)
		return STACK_NONE;
	/* The stack of a task that is already running again is another one. */
	if ((u64)task == bpf_get_current_task())
		return STACK_MISSED;
	if (may_be_cached)
		cached = look_up_kernel_stack(task);
	if (cached && !unseen(cached) && !unwind_every_kernel_stack)
		return cached;

	room = scratch_room(kind);
	if (!room)
		return STACK_MISSED;
	prepare_kernel_stack(&room->event, task->tgid, false);
	bytes = bpf_get_task_stack(task, room->event.frames, KERNEL_STACK_BYTES,
				   0);
	id = publish_stack(kind, bytes);
	if (may_be_cached && !cached && id > STACK_MISSED)
		cache_kernel_stack(id, bytes / sizeof(u64));
	if (unwind_every_kernel_stack)
		check_kernel_cache_hit(cached, id);
	return id;
}

#endif
