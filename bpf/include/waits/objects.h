/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Finds the resource on which a blocked thread waits. The arguments of its system call
 * name a file, a socket, a futex or a child. In a page fault the resource is the file
 * of the page.
 *
 * Programs look for the resource when an interval that counts ends, just before the
 * thread is back. The saved registers and the kernel stack still show the resource
 * then. The holder of a lock is in the thread's memory, which programs read when the
 * thread leaves. A resource is hashed and sent once, as stacks are.
 */
#ifndef SYSTEMSCOPE_OBJECTS_H
#define SYSTEMSCOPE_OBJECTS_H

#include "clock/thread_clock.h"
#include "stacks/stack_capture.h"
#include "system_calls.h"
#include "waits/children.h"
#include "waits/files.h"
#include "waits/futexes.h"
#include "waits/saved_words.h"

/* Scratch memory for a call and its resource, which do not fit on the stack. */
struct wait_scratch {
	/* Address of the thread's user registers. */
	u64 registers;
	/* Instance and PID of the thread's process, and holder of the lock. */
	u64 instance;
	u32 pid;
	u32 holder;
	/* Class of the object on which the thread waited, or 0. */
	u64 class;
	struct call_registers call;
	struct object_event event;
};

/* Indexed by enum scratch, because a program of another kind may interrupt. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_KINDS);
	__type(key, u32);
	__type(value, struct wait_scratch);
} wait_scratches SEC(".maps");

/*
 * Returns the ID of the resource on which the task at @address, which is off the CPU,
 * waits; NO_OBJECT if unknown. The scratch of @kind has the other inputs. The function
 * is global, so the verifier checks it once: see publish_stack().
 */
__noinline u64 find_object(u64 address, u32 kind)
{
	struct task_struct *task = (void *)address;
	struct wait_scratch *scratch;
	struct call_registers *call;
	struct object_event *event;
	enum wait_argument argument;
	struct file *file = NULL;
	struct inode *inode = NULL;
	u32 index = kind, fd;
	u64 *slot;

	scratch = bpf_map_lookup_elem(&wait_scratches, &index);
	if (!scratch)
		return NO_OBJECT;
	call = &scratch->call;
	event = &scratch->event;
	if (!read_call_registers(call, (void *)scratch->registers))
		return NO_OBJECT;
	argument = wait_argument(call);
	if (argument == ARGUMENT_NONE)
		return NO_OBJECT;
	__builtin_memset(event, 0, sizeof(*event));
	if (argument == ARGUMENT_FUTEX)
		event->instance = scratch->instance;
	fd = call->first_argument;
	if (argument == ARGUMENT_FUTEX) {
		describe_futex(event, task, call, scratch->holder,
			       scratch->class);
	} else if (argument == ARGUMENT_CHILD) {
		if (!describe_child(event, task, call->first_argument))
			return NO_OBJECT;
	} else if (argument == ARGUMENT_ID_TYPE) {
		if (!describe_child_by_type(event, task, call))
			return NO_OBJECT;
	} else if (argument == ARGUMENT_FAULT) {
		inode = faulted_inode(task);
		if (!inode)
			return NO_OBJECT;
		describe_inode(event, inode);
		event->object = OBJECT_MAPPED;
		fd = NO_FILE_DESCRIPTOR;
	} else {
		if (argument == ARGUMENT_POLLED) {
			file = polled_file(task);
			fd = NO_FILE_DESCRIPTOR;
		} else {
			file = held_file(task, fd);
		}
		if (argument == ARGUMENT_EPOLL && file)
			file = ready_file(file, &fd);
		if (!file)
			return NO_OBJECT;
		describe_file(event, file);
	}
	event->id = object_id(event);
	slot = unseen(event->id);
	if (!slot)
		return event->id;

	event->kind = EVENT_OBJECT;
	event->pid = scratch->pid;
	event->fd = fd;
	if (inode)
		read_name(event, first_alias(inode));
	else if (event->object == OBJECT_FILE)
		read_name(event, BPF_CORE_READ(file, f_path.dentry));
	if (send(BPF_CORE_READ(task, tgid), event, sizeof(*event), can_wait()))
		__sync_fetch_and_add(&lost.stack_frames, 1);
	else
		*slot = event->id;
	return event->id;
}

/*
 * Returns the ID of the resource on which @task, which is off the CPU, waits. @thread
 * is its record. If the kernel did not show the thread's return, the thread has gone on
 * since and the resource is unknown.
 */
static __always_inline u64 capture_object(struct task_struct *task,
					  struct thread *thread,
					  enum scratch kind)
{
	struct wait_scratch *scratch;
	u32 index = kind;

	if (!want_objects || !thread->instance ||
	    as_number(task) == bpf_get_current_task())
		return NO_OBJECT;
	scratch = bpf_map_lookup_elem(&wait_scratches, &index);
	if (!scratch)
		return NO_OBJECT;
	scratch->registers = as_number(user_regs(task));
	scratch->instance = thread->instance;
	scratch->pid = thread->pid;
	scratch->holder = thread->lock_holder;
	scratch->class = thread->lock_class;
	return find_object(as_number(task), kind);
}

#endif
