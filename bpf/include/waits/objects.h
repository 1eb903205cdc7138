/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What a blocked thread waits on: the file, the socket, the futex or the child that
 * its system call names, or the file of the page that it touched.
 *
 * It is found out when the interval ends and counts, just before the thread is back:
 * its saved registers and its stack in the kernel still say so. Who holds a lock is in
 * its memory, and is read when it leaves. An object is hashed and sent once, as
 * stacks are.
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

/* Stacks have no room for what a call is taken apart in, and its object put together. */
struct wait_scratch {
	/* Where the user registers of the thread are. */
	u64 registers;
	/* Whose it is, and who held the lock. */
	u64 instance;
	u32 pid;
	u32 holder;
	struct call_registers call;
	struct object_event event;
};

/* By kind, as what looks there may be interrupted. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_KINDS);
	__type(key, u32);
	__type(value, struct wait_scratch);
} wait_scratches SEC(".maps");

/*
 * The ID of what the task at @address waits on, which is off the CPU, and of which the
 * room of @kind tells the rest; NO_OBJECT if that is not known. Global, so that the
 * verifier looks at it once: see publish_stack().
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
	u32 room = kind, fd;
	u64 *slot;

	scratch = bpf_map_lookup_elem(&wait_scratches, &room);
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
		describe_futex(event, task, call, scratch->holder);
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
 * The ID of what @task, which is off the CPU, waits on; @thread is its record. Of a thread
 * whose return was not shown to us it is no longer known: it is somewhere else by now.
 */
static __always_inline u64 capture_object(struct task_struct *task,
					  struct thread *thread,
					  enum scratch kind)
{
	struct wait_scratch *scratch;
	u32 room = kind;

	if (!want_objects || !thread->instance ||
	    as_number(task) == bpf_get_current_task())
		return NO_OBJECT;
	scratch = bpf_map_lookup_elem(&wait_scratches, &room);
	if (!scratch)
		return NO_OBJECT;
	scratch->registers = as_number(user_regs(task));
	scratch->instance = thread->instance;
	scratch->pid = thread->pid;
	scratch->holder = thread->lock_holder;
	return find_object(as_number(task), kind);
}

#endif
