/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Finds the children for which their parents wait. */
#ifndef SYSTEMSCOPE_WAITED_CHILDREN_H
#define SYSTEMSCOPE_WAITED_CHILDREN_H

#include "system_calls.h"
#include "waits/saved_words.h"

/* include/uapi/linux/wait.h */
#define P_ALL 0
#define P_PID 1
#define P_PIDFD 3

/* Maximum children that a search for the awaited child examines. */
#define MAX_CHILDREN 64

/*
 * Returns the child for which @task waited: the child with @id, an ID in the PID
 * namespace of @task. If @id is -1, @task waited for any child, and the function
 * returns the first child that has ended.
 */
static __noinline struct task_struct *awaited_child(struct task_struct *task,
						    int id)
{
	struct list_head *head =
		(void *)task +
		bpf_core_field_offset(struct task_struct, children);
	u32 level = BPF_CORE_READ(task, thread_pid, level);
	struct list_head *at = BPF_CORE_READ(head, next);

	if (level >= PID_NAMESPACE_DEPTH)
		return NULL;
	for (u32 i = 0; i < MAX_CHILDREN; i++) {
		struct task_struct *child;
		struct pid *pid;

		if (!at || at == head)
			break;
		child = (void *)at -
			bpf_core_field_offset(struct task_struct, sibling);
		pid = BPF_CORE_READ(child, thread_pid);
		if (id == -1 ? BPF_CORE_READ(child, exit_state) :
			       number_at(pid, level) == (u32)id)
			return child;
		at = BPF_CORE_READ(at, next);
	}
	return NULL;
}

static __always_inline bool describe_child(struct object_event *event,
					   struct task_struct *task, int id)
{
	struct task_struct *child = awaited_child(task, id);

	if (!child)
		return false;
	event->object = OBJECT_CHILD;
	read_comm(event, child);
	return true;
}

/*
 * Describes the child of the pidfd @fd. The call goes on with this child even if
 * another thread closes @fd.
 */
static __always_inline bool describe_child_of_pidfd(struct object_event *event,
						    struct task_struct *task,
						    u32 fd)
{
	struct file *file = file_of(task, fd);
	struct pid *pid = file ? pid_of_file(file) : NULL;
	struct task_struct *child;

	if (!pid || !has_on_stack(task, pid, pid))
		return false;
	child = task_of_pid(pid);
	if (!child)
		return false;
	event->object = OBJECT_CHILD;
	read_comm(event, child);
	return true;
}

static __always_inline bool
describe_child_by_type(struct object_event *event, struct task_struct *task,
		       const struct call_registers *call)
{
	if (call->first_argument == P_PIDFD)
		return describe_child_of_pidfd(event, task,
					       call->second_argument);
	if (call->first_argument != P_ALL && call->first_argument != P_PID)
		return false;
	return describe_child(
		event, task,
		call->first_argument == P_ALL ? -1 : call->second_argument);
}

#endif
