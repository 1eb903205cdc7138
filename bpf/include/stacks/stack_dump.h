/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A stack that no table is there for yet, of a process or a mapping that is
 * new: it goes to user space as it is, to be walked there once the tables are
 * made.
 */
#ifndef SYSTEMSCOPE_STACK_DUMP_H
#define SYSTEMSCOPE_STACK_DUMP_H

#include "news.h"
#include "stacks/unwind.h"

/*
 * A process that is new may not live for long: its first dump has user space read its
 * mappings at once. That of new code has it look often. Unless user space says that dumps
 * can wait, as those of samples do, which are to wake nobody: see can_wait().
 */
const volatile bool dumps_can_wait = false;

#define STACK_DUMP_PAGE 4096
/* With what else an entry has, as much as a per-CPU map can hold (32 KiB). */
#define STACK_DUMP_PAGES 7
#define STACK_DUMP_BYTES (STACK_DUMP_PAGES * STACK_DUMP_PAGE)

/* Whose stack it is: user space may look at the thread again. */
struct stack_owner {
	u64 task;
	/* pthread_self() */
	u64 thread_pointer;
	u64 instance;
	u32 pid;
	u32 unused;
};

USER_SPACE_KNOWS(struct, stack_owner);

static __always_inline void describe_owner(struct stack_owner *owner,
					   struct task_struct *task)
{
	owner->task = (u64)task;
	owner->thread_pointer = thread_pointer(task);
	owner->instance = process_instance(task);
	owner->pid = namespace_pid(task);
}

/* The user registers and the stack above the stack pointer. */
struct stack_dump {
	u32 kind;
	u32 pid;
	u64 hash;
	u64 instance;
	/* Of another process than @pid's, where it is a fork and goes by its parent's tables. */
	struct stack_owner owner;
	struct user_registers registers;
	u32 leaf_is_exact;
	/* How much of the stack is there. */
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

/* How many more may be sent; user space raises it as it keeps up. */
volatile s64 dumps_allowed = 0;

/*
 * How many more a process may cause: user space renews that when it has read
 * mappings that it did not know. Direct-mapped by instance: one that pushes
 * another out only renews what that one may cause, within what is allowed.
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

/* A process's code changed: its mappings are to be read again. */
struct code_changed {
	u32 kind;
	u32 pid;
	u64 instance;
};

USER_SPACE_KNOWS(struct, code_changed);

/*
 * Puts the return addresses into the dump that were on the stack before uretprobes replaced
 * them: user space cannot read these. Global, for the verifier's sake.
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
	for (u32 i = 0; i < MOST_RETURN_INSTANCES; i++) {
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
 * Sends what the walk in the room of @kind starts from, and the stack; @at_once: user space
 * is woken. Returns whether it was sent. Global, for the verifier's sake: see
 * unwind_frame().
 */
__noinline int send_stack_dump(u32 kind, u32 at_once)
{
	struct stack_scratch *room = scratch_room(kind);
	struct stack_dump *dump;
	u32 zero = 0, bytes;
	u64 sp, size;

	dump = bpf_map_lookup_elem(&stack_dumps, &zero);
	if (!room || !dump || !room->walk.at_leaf)
		return 0;
	dump->kind = EVENT_STACK_DUMP;
	dump->pid = room->event.pid;
	dump->hash = room->event.hash;
	dump->instance = room->event.instance;
	describe_owner(&dump->owner, current_task());
	dump->leaf_is_exact = room->event.leaf_is_exact;
	read_registers(&dump->registers, &room->walk.registers);
	sp = room->walk.sp;

	/* Up to the end of a page, then pages: reads are all or nothing. */
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
	if (room->walk.trampoline)
		restore_return_addresses(sp);
	dump->bytes = bytes;
	size = STACK_DUMP_HEADER + (u64)bytes;
	/* So that the verifier sees the comparison that the compiler made. */
	barrier_var(size);
	if (size > sizeof(*dump))
		return 0;
	return !send(room->event.payer, dump, size,
		     at_once ? CANNOT_WAIT : can_wait());
}

/*
 * Sends a dump of the stack that @room, of @kind, is about, if there may be one. Returns
 * its ID, or STACK_MISSED.
 */
static __always_inline u64 dump_stack(struct stack_scratch *room, u32 kind)
{
	/* Of a fork that goes by its parent's tables, its own. */
	u64 instance = process_instance(current_task());
	u32 index = instance & (DUMP_BUDGETS - 1);
	struct stack_event *event = &room->event;
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
		  (is_news() || budget->left == DUMPS_OF_A_PROCESS);
	if (!send_stack_dump(kind, at_once))
		return STACK_MISSED;
	__sync_fetch_and_add(&dumps_allowed, -1);
	__sync_fetch_and_add(&budget->left, -1);
	return event->hash;
}

#endif
