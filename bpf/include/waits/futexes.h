/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Describes futexes: their addresses, the holders of their locks, and hints at their
 * purpose.
 */
#ifndef SYSTEMSCOPE_FUTEXES_H
#define SYSTEMSCOPE_FUTEXES_H

#include "clock/thread_clock.h"
#include "stacks/user_memory.h"
#include "waits/futex_calls.h"
#include "waits/object_event.h"
#include "waits/language_locks.h"

/* PID_MAX_LIMIT of include/linux/threads.h */
#define MAX_TIDS (4 << 20)

/*
 * Offset of the owner in glibc's mutex: struct __pthread_mutex_s of
 * sysdeps/x86/nptl/bits/struct_mutex.h.
 */
#define MUTEX_OWNER 8

/*
 * Returns the ID of the thread that holds the lock for which @task, which is current,
 * leaves its CPU; 0 if unknown. The owner is in the memory of @task, which a program
 * can read only while @task is current.
 */
static __always_inline u32 lock_holder(struct task_struct *task,
				       struct thread *thread)
{
	struct pt_regs *regs = user_regs(task);
	u32 operation, holder;
	u64 lock;

	if (!want_objects ||
	    read_user_register(regs, REGS_SYSTEM_CALL) != FUTEX_SYSTEM_CALL ||
	    is_kernel_thread(task))
		return 0;
	operation = read_user_register(regs, REGS_SECOND_ARGUMENT) &
		    FUTEX_CMD_MASK;
	lock = read_user_register(regs, REGS_FIRST_ARGUMENT);
	if (operation == FUTEX_WAIT &&
	    (u32)read_user_register(regs, REGS_THIRD_ARGUMENT) ==
		    MUTEX_WITH_WAITERS)
		return read_user(&holder, sizeof(holder), lock + MUTEX_OWNER) ?
			       holder & ~LOCK_LANGUAGE :
			       0;
	if (operation == FUTEX_WAIT_BITSET && any_runtime)
		return language_lock_holder(thread->pid, lock);
	if (is_priority_inheriting(operation))
		return read_user(&holder, sizeof(holder), lock) ?
			       holder & FUTEX_TID_MASK & ~LOCK_LANGUAGE :
			       0;
	return 0;
}

/*
 * Returns the class of the object on which @task, which is current, waits, if its
 * runtime has such objects; else 0.
 */
static __always_inline u64 lock_class(struct task_struct *task,
				      struct thread *thread)
{
	struct pt_regs *regs = user_regs(task);

	if (!want_objects || !any_named_threads ||
	    read_user_register(regs, REGS_SYSTEM_CALL) != FUTEX_SYSTEM_CALL ||
	    is_kernel_thread(task) ||
	    (read_user_register(regs, REGS_SECOND_ARGUMENT) & FUTEX_CMD_MASK) !=
		    FUTEX_WAIT_BITSET)
		return 0;
	return language_lock_class(thread->pid);
}

/*
 * Describes a futex. The expected value distinguishes few futexes, and a counter
 * changes it from one wait to the next. The description has the value only if it may be
 * that of a mutex with waiters, or the ID of a thread to join.
 */
static __always_inline void describe_futex(struct object_event *event,
					   struct task_struct *task,
					   const struct call_registers *call,
					   u32 holder, u64 class)
{
	u32 value = call->third_argument;

	event->object = OBJECT_FUTEX;
	event->class = class;
	event->address = call->first_argument;
	event->operation = call->second_argument & FUTEX_CMD_MASK;
	event->operation |= holder & LOCK_LANGUAGE;
	if (value == MUTEX_WITH_WAITERS ||
	    (!(call->second_argument & FUTEX_PRIVATE_FLAG) &&
	     value <= MAX_TIDS))
		event->value = value;
	if (has_callers_ids(task))
		event->tid = holder & ~LOCK_LANGUAGE;
}

#endif
