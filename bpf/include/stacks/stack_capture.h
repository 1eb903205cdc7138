/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Captures stacks. A stack's ID is a hash of its frames, and programs count by this ID.
 * A program sends the frames to user space when it first sees the stack.
 */
#ifndef SYSTEMSCOPE_STACK_CAPTURE_H
#define SYSTEMSCOPE_STACK_CAPTURE_H

#include "events.h"
#include "stacks/chain.h"
#include "stacks/kernel_stack_cache.h"
#include "stacks/mixed_stacks.h"
#include "stacks/seen_stacks.h"
#include "stacks/stack_dump.h"
#include "task.h"
#include "stacks/unwind.h"

const volatile bool want_user_stacks = true;
const volatile bool want_kernel_stacks = true;
/* Maximum frames of a user stack that the kernel's helpers return. */
const volatile u32 helper_stack_depth = KERNEL_STACK_DEPTH;
/*
 * True in checks only. Programs then unwind every user stack even if the cache has it,
 * and also send each as a dump. The next two variables count whether the cache had the
 * right ID.
 */
const volatile bool dump_every_stack = false;
volatile u64 cache_hits_right = 0;
volatile u64 cache_hits_wrong = 0;
/*
 * True in checks only. Programs then unwind every kernel stack even if the cache has
 * it. The next three variables count whether the cache had the right ID.
 */
const volatile bool unwind_every_kernel_stack = false;
volatile u64 kernel_cache_hits_right = 0;
volatile u64 kernel_cache_hits_wrong = 0;
volatile u64 kernel_cache_misses = 0;

/*
 * Returns @hash extended by at most FRAMES_AT_ONCE frames, from @first on, of the
 * @depth frames in the scratch of @kind.
 */
__noinline u64 hash_frames(u32 kind, u64 hash, u32 first, u32 depth)
{
	struct stack_scratch *scratch = find_stack_scratch(kind);

	if (!scratch)
		return hash;
	for (u32 i = 0; i < FRAMES_AT_ONCE; i++) {
		if (first + i >= depth)
			break;
		hash = hash_word(hash,
				 scratch->event.frames[frame_index(first + i)]);
	}
	return hash;
}

/*
 * Hashes the stack in the scratch of @kind, whose frames take @bytes, and sends it
 * unless user space has it. Returns its ID, or STACK_MISSED if there are no frames or
 * the buffer is full.
 *
 * The function is global and takes scalars, so the verifier checks its loop once
 * instead of once per path to it.
 */
__noinline u64 publish_stack(u32 kind, int bytes)
{
	struct stack_scratch *scratch = find_stack_scratch(kind);
	struct stack_event *event;
	u64 hash, *slot;
	u32 depth, size;

	if (!scratch || bytes <= 0)
		return STACK_MISSED;
	event = &scratch->event;

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

/* Tables that an unwind uses. */
struct walk_tables {
	u64 mappings;
	u64 generation;
};

/*
 * Returns the process of the stack in @scratch, and sets @tables to its tables. Returns
 * NULL if it has no tables yet.
 */
static __always_inline struct unwind_process *
find_process(struct stack_scratch *scratch, struct walk_tables *tables)
{
	struct stack_event *event = &scratch->event;
	struct unwind_process *process;
	u32 pid = event->pid;

	process = bpf_map_lookup_elem(&unwind_processes, &pid);
	if (!process || process->instance != event->instance)
		return NULL;
	tables->generation = *(volatile u64 *)&process->generation;
	tables->mappings = *(volatile u64 *)&process->mappings;
	scratch->chain.hash = 0;
	scratch->chain.code_bytes = 0;
	for (u32 i = 0; i < PROCESS_RUNTIMES; i++)
		scratch->runtimes[i] = process->runtimes[i];
	/* User space may have given the entry to another process meanwhile. */
	barrier();
	return process->instance == event->instance ? process : NULL;
}

/* Returns whether user space knows the process and has made its tables. */
static __always_inline bool has_tables(u32 pid, u64 instance)
{
	struct unwind_process *process;

	process = bpf_map_lookup_elem(&unwind_processes, &pid);
	return process && process->instance == instance;
}

/*
 * Returns the parent's process for a fork that user space does not know yet, and makes
 * the stack a stack of the parent. Returns NULL and changes nothing if the parent has
 * no tables for the same code.
 */
static __always_inline struct unwind_process *
find_forks_process(struct stack_scratch *scratch, struct task_struct *task,
		   struct walk_tables *tables)
{
	struct stack_event *event = &scratch->event;
	struct task_struct *parent = fork_of_same_code(task);
	struct unwind_process *process;
	u64 instance = event->instance;
	u32 pid = event->pid;

	if (!parent)
		return NULL;
	event->pid = namespace_pid(parent);
	event->instance = process_instance(parent);
	process = find_process(scratch, tables);
	if (!process) {
		event->pid = pid;
		event->instance = instance;
	}
	return process;
}

/*
 * Stores @pages, the number of mapped pages of code. Returns whether it has changed
 * since the mappings were last used.
 */
static __always_inline bool note_code_pages(struct unwind_process *process,
					    u64 pages)
{
	u64 before = process->code_pages;

	if (pages == before)
		return false;
	process->code_pages = pages;
	return before;
}

/* Asks user space to read the mappings again. */
static __always_inline void report_code_change(struct stack_event *event)
{
	struct code_changed changed = {
		.kind = EVENT_CODE_CHANGED,
		.pid = event->pid,
		.instance = event->instance,
	};

	send(event->payer, &changed, sizeof(changed), can_wait());
}

/* Starts an unwind at walk->registers. @exact: see ip_is_exact. */
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

/* Ends the chain that the native unwind noted in the scratch of @kind, if any. */
static __always_inline void finish_chain(struct stack_scratch *scratch,
					 u32 kind)
{
	struct mixed_stack *stack = find_mixed_scratch(kind);
	struct chain_walk *chain = &scratch->chain;

	if (stack && chain->code_bytes && stack->count)
		chain->hash = hash_word(chain->hash, stack->end) | 1;
}

static __always_inline void check_cache_hit(u64 cached, u64 walked)
{
	if (cached == walked)
		__sync_fetch_and_add(&cache_hits_right, 1);
	else if (cached)
		__sync_fetch_and_add(&cache_hits_wrong, 1);
}

/*
 * Sends a dump, and the runtime's frames in the scratch of @kind. User space puts these
 * frames into the stack once it has unwound the dump. Returns the stack's ID, or
 * STACK_MISSED.
 */
static __always_inline u64 dump_mixed_stack(struct stack_scratch *scratch,
					    u32 kind)
{
	u64 id = dump_stack(scratch, kind);

	if (scratch->chain.hash && id != STACK_MISSED) {
		publish_functions(kind);
		scratch->walk.depth = 0;
		send_mixed_stack(kind, id, id);
	}
	return id;
}

/*
 * Unwinds the current task's user stack by the tables, from the registers in the
 * scratch of @kind. Returns its ID, or STACK_NONE if user space does not know the
 * process. The caller then unwinds the stack in another way. The function is global to
 * save the verifier work: see unwind_frame().
 */
__noinline u64 walk_by_tables(u32 kind)
{
	struct stack_scratch *scratch = find_stack_scratch(kind);
	struct task_struct *task = current_task();
	u64 pages = read_task(untrusted(task), mm, exec_vm);
	struct unwind_process *process;
	struct walk_tables tables;
	struct stack_event *event;
	u64 id, cached = 0;
	struct walk *walk;
	bool exact;
	int end;

	if (!scratch)
		return STACK_MISSED;
	event = &scratch->event;
	walk = &scratch->walk;
	exact = event->leaf_is_exact;
	start_walk(walk, exact);
	process = find_process(scratch, &tables);
	if (!process)
		process = find_forks_process(scratch, task, &tables);
	if (!process) {
		id = dump_stack(scratch, kind);
		return id == STACK_MISSED ? STACK_NONE : id;
	}
	walk->first_mapping = (u32)tables.mappings;
	walk->mapping_count = tables.mappings >> 32;
	if (scratch->runtimes[0].language)
		walk_chain(kind, thread_pointer(task));
	if (note_code_pages(process, pages)) {
		/* The mappings may be out of date. */
		id = dump_mixed_stack(scratch, kind);
		if (id != STACK_MISSED)
			return id;
		report_code_change(event);
	}
	/*
	 * The cache takes only stacks that end in a system call. Threads block at the
	 * same places again and again, but an interrupt can be anywhere.
	 */
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
			id = mixed_stack_id(scratch, cached);
			if (!unseen(id))
				return id;
		}
		begin_notes(&walk->notes, &from);
	}
	end = unwind_stack(scratch, kind);

	if ((end & 0xff) == WALK_NO_MAPPING || dump_every_stack) {
		u32 depth = walk->depth;

		/* The dump starts at the registers at which the unwind started. */
		start_walk(walk, exact);
		walk->depth = depth;
	}
	if ((end & 0xff) == WALK_NO_MAPPING) {
		/* User space notes the frames in generated code itself. */
		if (scratch->chain.code_bytes)
			scratch->chain.hash = 0;
		id = dump_mixed_stack(scratch, kind);
		if (id != STACK_MISSED)
			return id;
	}
	event->walk_end = end;
	finish_chain(scratch, kind);
	id = publish_stack(kind, walk->depth * sizeof(u64));
	/* The native unwind determines frames that are on the stack, so it is cached with them. */
	if (scratch->chain.code_bytes && scratch->chain.hash &&
	    id != STACK_MISSED) {
		id = publish_mixed_stack(kind, id);
		scratch->chain.hash = 0;
	}
	if ((end & 0xff) == WALK_REACHED_ROOT && id != STACK_MISSED)
		cache_walk(&walk->notes, id);
	if (dump_every_stack) {
		check_cache_hit(cached, id);
		send_stack_dump(kind, false);
	}
	if (!scratch->chain.hash || id == STACK_MISSED)
		return id;
	return publish_mixed_stack(kind, id);
}

/*
 * Captures the user stack of the current task. @instance and @pid identify the address
 * space, and @kind selects the scratch.
 */
static __always_inline u64 capture_user_stack(void *ctx, enum scratch kind,
					      struct task_struct *task,
					      u64 instance, u32 pid)
{
	struct stack_scratch *scratch;
	struct stack_event *event;
	struct pt_regs *regs;
	u64 id;
	int bytes;

	if (!want_user_stacks || is_kernel_thread(task) ||
	    !read_task(untrusted(task), mm))
		return STACK_NONE;
	scratch = find_stack_scratch(kind);
	if (!scratch)
		return STACK_MISSED;
	event = &scratch->event;

	/* One read gets all registers, since the unwind needs several. */
	regs = &scratch->walk.registers;
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
 * Captures the kernel stack of the current context. Returns STACK_NONE if there is
 * none, as when a sample interrupts user space. The share of the process @payer pays
 * for the stack. @leaf_is_exact: true for a sample, false for a tracepoint.
 */
static __always_inline u64 capture_kernel_stack(void *ctx, u32 payer,
						bool leaf_is_exact)
{
	struct stack_scratch *scratch = find_stack_scratch(SCRATCH_HOOK);
	int bytes;

	if (!scratch)
		return STACK_MISSED;
	prepare_kernel_stack(&scratch->event, payer, leaf_is_exact);
	bytes = bpf_get_stack(ctx, scratch->event.frames, KERNEL_STACK_BYTES,
			      0);
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

/* Captures the kernel stack on which a task that is not running was switched out. */
static __always_inline u64 capture_saved_kernel_stack(struct task_struct *task,
						      enum scratch kind)
{
	/*
	 * A task that an iterator visits may begin to run meanwhile, which changes its
	 * stack.
	 */
	bool may_be_cached = kind == SCRATCH_HOOK;
	struct stack_scratch *scratch;
	u64 id, cached = 0;
	long bytes;

	if (!want_kernel_stacks)
		return STACK_NONE;
	/* A task that already runs again has another stack. */
	if ((u64)task == bpf_get_current_task())
		return STACK_MISSED;
	if (may_be_cached)
		cached = look_up_kernel_stack(task);
	if (cached && !unseen(cached) && !unwind_every_kernel_stack)
		return cached;

	scratch = find_stack_scratch(kind);
	if (!scratch)
		return STACK_MISSED;
	prepare_kernel_stack(&scratch->event, task->tgid, false);
	bytes = bpf_get_task_stack(task, scratch->event.frames,
				   KERNEL_STACK_BYTES, 0);
	id = publish_stack(kind, bytes);
	if (may_be_cached && !cached && id > STACK_MISSED)
		cache_kernel_stack(id, bytes / sizeof(u64));
	if (unwind_every_kernel_stack)
		check_kernel_cache_hit(cached, id);
	return id;
}

#endif
