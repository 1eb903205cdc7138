/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Tells whether a thread waits for a futex, by the arguments of its system call. */
#ifndef SYSTEMSCOPE_FUTEX_CALLS_H
#define SYSTEMSCOPE_FUTEX_CALLS_H

#include "system_calls.h"
#include "task.h"

/* include/uapi/linux/futex.h */
#define FUTEX_CMD_MASK 0x7f
#define FUTEX_WAIT 0
#define FUTEX_LOCK_PI 6
#define FUTEX_WAIT_BITSET 9
#define FUTEX_LOCK_PI2 13
#define FUTEX_PRIVATE_FLAG 128
#define FUTEX_TID_MASK 0x3fffffff

/* Value of a mutex of glibc or Rust while threads wait for it. */
#define MUTEX_WITH_WAITERS 2

static __always_inline bool is_priority_inheriting(u32 operation)
{
	return operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2;
}

/* Returns whether @task, which is off the CPU, waits for a futex. */
static __always_inline bool waits_for_futex(struct task_struct *task)
{
	return !is_kernel_thread(task) &&
	       BPF_CORE_READ(user_regs(task), REGS_SYSTEM_CALL) ==
		       FUTEX_SYSTEM_CALL;
}

/*
 * Returns whether @task, which is off the CPU, most likely waits for a mutex. The
 * result is not certain, because a counter can have MUTEX_WITH_WAITERS as its value,
 * too.
 */
static __always_inline bool waits_for_mutex(struct task_struct *task)
{
	struct pt_regs *regs = user_regs(task);
	u32 operation;

	if (!waits_for_futex(task))
		return false;
	operation = BPF_CORE_READ(regs, REGS_SECOND_ARGUMENT) & FUTEX_CMD_MASK;
	if (is_priority_inheriting(operation))
		return true;
	return (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET) &&
	       (u32)BPF_CORE_READ(regs, REGS_THIRD_ARGUMENT) ==
		       MUTEX_WITH_WAITERS;
}

#endif
