/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Dumps of stacks for which there is no table yet, because the process or the mapping
 * is new. User space unwinds a dump once it has made the tables.
 */
#ifndef SYSTEMSCOPE_STACK_DUMP_H
#define SYSTEMSCOPE_STACK_DUMP_H

#include "news.h"
#include "stacks/uretprobes.h"
#include "stacks/user_memory.h"
#include "stacks/walk.h"

/*
 * True if dumps never wake user space, as for samples: see can_wait(). If false, the
 * first dump of a process wakes user space, which reads the mappings at once because a
 * new process may end soon. A dump of new code makes user space poll often.
 */
const volatile bool dumps_can_wait = false;

#define STACK_DUMP_PAGE 4096
/*
 * Maximum pages of stack in a dump. A dump is an entry of a per-CPU map, which holds at
 * most 32 KiB.
 */
#define STACK_DUMP_PAGES 7
#define STACK_DUMP_BYTES (STACK_DUMP_PAGES * STACK_DUMP_PAGE)

/* Owner of a stack: the thread that user space may inspect again. */
struct stack_owner {
	u64 task;
	/* pthread_self() of the thread. */
	u64 thread_pointer;
	u64 instance;
	u32 pid;
	/* 1 for the first thread of its process, else 0. */
	u32 is_first;
};

USER_SPACE_KNOWS(struct, stack_owner);

static __always_inline void describe_owner(struct stack_owner *owner,
					   struct task_struct *task)
{
	owner->task = (u64)task;
	owner->thread_pointer = thread_pointer(task);
	owner->instance = process_instance(task);
	owner->pid = namespace_pid(task);
	owner->is_first = is_first_thread(task);
}

/* Dump: user registers, and the stack above the stack pointer. */
struct stack_dump {
	u32 kind;
	u32 pid;
	u64 hash;
	u64 instance;
	/*
	 * Owner. If a fork uses its parent's tables, @pid is the parent's and the owner
	 * is a thread of the fork.
	 */
	struct stack_owner owner;
	struct user_registers registers;
	u32 leaf_is_exact;
	/* Length of @stack in bytes. */
	u32 bytes;
	u8 stack[STACK_DUMP_BYTES];
};

#define STACK_DUMP_HEADER __builtin_offsetof(struct stack_dump, stack)

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_dump);
} stack_dumps SEC(".maps");

/*
 * Number of dumps that programs may still send. User space raises it as it handles
 * dumps.
 */
volatile s64 dumps_allowed = 0;

/*
 * Number of dumps that a process may still cause. User space renews it when it has read
 * mappings that it did not know. The map is direct-mapped by instance. An instance that
 * another instance has evicted gets a new budget. dumps_allowed bounds all budgets
 * together.
 */
struct dump_budget {
	u64 instance;
	s32 left;
	u32 unused;
};

#define DUMP_BUDGETS 4096

enum dump_limits {
	DUMPS_OF_A_PROCESS = 16,
};

USER_SPACE_KNOWS(enum, dump_limits);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DUMP_BUDGETS);
	__type(key, u32);
	__type(value, struct dump_budget);
} dump_budgets SEC(".maps");

/*
 * Message: the code of a process has changed, and user space must read its mappings
 * again.
 */
struct code_changed {
	u32 kind;
	u32 pid;
	u64 instance;
};

USER_SPACE_KNOWS(struct, code_changed);

/*
 * Restores in the dump the return addresses that uretprobes replaced on the stack,
 * since user space cannot read them. The function is global to save the verifier work.
 */
__noinline int restore_return_addresses(u64 sp)
{
	struct return_instance *instance = return_instances(current_task());
	struct stack_dump *dump;
	u64 offset;
	u32 zero = 0;

	dump = bpf_map_lookup_elem(&stack_dumps, &zero);
	if (!dump)
		return 0;
	for (u32 i = 0; i < MAX_RETURN_INSTANCES; i++) {
		if (!instance)
			break;
		offset = BPF_CORE_READ(instance, stack) - sp;
		if (offset <= STACK_DUMP_BYTES - sizeof(u64))
			*(u64 *)(dump->stack + offset) =
				BPF_CORE_READ(instance, orig_ret_vaddr);
		instance = BPF_CORE_READ(instance, next);
	}
	return 0;
}

/*
 * Sends the registers of the unwind in the scratch of @kind, and the stack. @at_once:
 * whether the dump wakes user space. Returns whether the dump was sent. The function is
 * global to save the verifier work: see unwind_frame().
 */
__noinline int send_stack_dump(u32 kind, u32 at_once)
{
	struct stack_scratch *scratch = find_stack_scratch(kind);
	struct stack_dump *dump;
	u32 zero = 0, bytes;
	u64 sp, size;

	dump = bpf_map_lookup_elem(&stack_dumps, &zero);
	if (!scratch || !dump || !scratch->walk.at_leaf)
		return 0;
	dump->kind = EVENT_STACK_DUMP;
	dump->pid = scratch->event.pid;
	dump->hash = scratch->event.hash;
	dump->instance = scratch->event.instance;
	describe_owner(&dump->owner, current_task());
	dump->leaf_is_exact = scratch->event.leaf_is_exact;
	read_registers(&dump->registers, &scratch->walk.registers);
	sp = scratch->walk.sp;

	/*
	 * Reads up to the end of a page, then whole pages: a read succeeds as a whole
	 * or not at all.
	 */
	bytes = STACK_DUMP_PAGE - (sp & (STACK_DUMP_PAGE - 1));
	if (!read_user(dump->stack, bytes, sp))
		return 0;
	for (u32 page = 1; page < STACK_DUMP_PAGES; page++) {
		if (bytes > STACK_DUMP_BYTES - STACK_DUMP_PAGE)
			break;
		if (!read_user(dump->stack + bytes, STACK_DUMP_PAGE,
			       sp + bytes))
			break;
		bytes += STACK_DUMP_PAGE;
	}
	if (scratch->walk.trampoline)
		restore_return_addresses(sp);
	dump->bytes = bytes;
	size = STACK_DUMP_HEADER + (u64)bytes;
	/* The barrier keeps the comparison visible for the verifier. */
	barrier_var(size);
	if (size > sizeof(*dump))
		return 0;
	return !send(scratch->event.payer, dump, size,
		     at_once ? CANNOT_WAIT : can_wait());
}

/*
 * Sends a dump of the stack in @scratch, the scratch of @kind, if the budgets allow it.
 * Returns the stack's ID, or STACK_MISSED.
 */
static __always_inline u64 dump_stack(struct stack_scratch *scratch, u32 kind)
{
	/* The fork's own instance, also if a fork uses its parent's tables. */
	u64 instance = process_instance(current_task());
	u32 index = instance & (DUMP_BUDGETS - 1);
	struct stack_event *event = &scratch->event;
	struct dump_budget *budget;
	bool at_once;
	u64 hash;

	budget = bpf_map_lookup_elem(&dump_budgets, &index);
	if (!budget)
		return STACK_MISSED;
	if (budget->instance != instance) {
		budget->instance = instance;
		budget->left = DUMPS_OF_A_PROCESS;
	}
	if (budget->left <= 0 || dumps_allowed <= 0)
		return STACK_MISSED;

	hash = hash_word(event->instance, bpf_ktime_get_ns());
	event->hash = stack_id(hash_word(hash, bpf_get_current_pid_tgid()));
	at_once = !dumps_can_wait &&
		  (note_news() || budget->left == DUMPS_OF_A_PROCESS);
	if (!send_stack_dump(kind, at_once))
		return STACK_MISSED;
	__sync_fetch_and_add(&dumps_allowed, -1);
	__sync_fetch_and_add(&budget->left, -1);
	return event->hash;
}

#endif
