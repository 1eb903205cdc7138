/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Return addresses that the kernel replaced. A uretprobe makes a function return to a
 * trampoline, and the kernel stores the original address by its place on the stack.
 */
#ifndef SYSTEMSCOPE_URETPROBES_H
#define SYSTEMSCOPE_URETPROBES_H

#include "kernel_types.h"
#include "task.h"

/* MAX_URETPROBE_DEPTH of kernel/events/uprobes.c */
#define MAX_RETURN_INSTANCES 64

/*
 * Returns the address of the trampoline in @task's process; 0 if the task never hit a
 * probe.
 */
static __always_inline u64 uretprobe_trampoline(struct task_struct *task)
{
	struct xol_area *area;

	if (!bpf_core_field_exists(task->utask) ||
	    !read_task(untrusted(task), utask))
		return 0;
	area = BPF_CORE_READ(task, mm, uprobes_state.xol_area);
	return area ? BPF_CORE_READ(area, vaddr) : 0;
}

static __always_inline struct return_instance *
return_instances(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->utask))
		return NULL;
	return BPF_CORE_READ(task, utask, return_instances);
}

/*
 * Returns the original return address of the current task at @slot; 0 if the kernel did
 * not replace it. The function is global to save the verifier work.
 */
__noinline u64 original_return_address(u64 slot)
{
	struct return_instance *instance = return_instances(current_task());

	for (u32 i = 0; i < MAX_RETURN_INSTANCES; i++) {
		if (!instance)
			break;
		if (BPF_CORE_READ(instance, stack) == slot)
			return BPF_CORE_READ(instance, orig_ret_vaddr);
		instance = BPF_CORE_READ(instance, next);
	}
	return 0;
}

/* Return address that the kernel replaced. */
struct replaced_return {
	/* Address of the word on the stack; 0 if the entry is empty. */
	u64 slot;
	u64 original;
};

#define MAX_REPLACED_RETURNS 4

/*
 * Stores the first entries of the kernel's list for @task, which is not running, in
 * @returns.
 */
static __always_inline void
describe_replaced_returns(struct replaced_return *returns,
			  struct task_struct *task)
{
	struct return_instance *instance = return_instances(task);

	for (u32 i = 0; i < MAX_REPLACED_RETURNS; i++) {
		if (!instance)
			break;
		returns[i].slot = BPF_CORE_READ(instance, stack);
		returns[i].original = BPF_CORE_READ(instance, orig_ret_vaddr);
		instance = BPF_CORE_READ(instance, next);
	}
}

#endif
