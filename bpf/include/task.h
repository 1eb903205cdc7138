/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A task's IDs, state and user registers. */
#ifndef SYSTEMSCOPE_TASK_H
#define SYSTEMSCOPE_TASK_H

#include "kernel_types.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kernel_stack.h"
#include "registers.h"

/* MAX_PID_NS_LEVEL of include/linux/pid_namespace.h */
#define PID_NAMESPACE_DEPTH 32

/*
 * Inode number of the caller's PID namespace; 0 for the initial namespace, whose IDs
 * the kernel itself uses. The caller is the process that loads the program.
 */
const volatile u32 pid_namespace = 0;

/*
 * Returns whether the verifier knows the type of every task pointer. Before 5.11 it
 * does not know the type of the pointer to the current task.
 */
static __always_inline bool tasks_have_types(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id,
					  BPF_FUNC_get_current_task_btf);
}

/*
 * Kernel function since Linux 6.2. The verifier replaces the call with a register move.
 */
extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym __weak;

/* ID of struct task_struct in the kernel's BTF, set by user space; 0 if unknown. */
const volatile u32 task_type = 0;

/*
 * Returns @task as a pointer that the verifier does not trust. This makes programs load
 * faster. For each load through a trusted pointer, and on every path to it, the
 * verifier searches all types of the kernel four times.
 */
static __always_inline struct task_struct *untrusted(struct task_struct *task)
{
	if (task_type && bpf_ksym_exists(bpf_rdonly_cast))
		return bpf_rdonly_cast(task, task_type);
	return task;
}

/*
 * Reads task->a->b->... for the arguments task, a, b, ... With known types a field
 * takes one load, else one call. If a pointer on the path is null, the result is 0. Use
 * it for fields that programs read often.
 */
#define read_task(task, ...)                                                   \
	(tasks_have_types() ? ___arrow(task, __VA_ARGS__) :                    \
			      BPF_CORE_READ(task, __VA_ARGS__))

static __always_inline struct task_struct *current_task(void)
{
	if (tasks_have_types())
		return bpf_get_current_task_btf();
	return (struct task_struct *)bpf_get_current_task();
}

static __always_inline u32 task_state(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;

	if (bpf_core_field_exists(old->state))
		return old->state;
	return task->__state;
}

static __always_inline bool is_kernel_thread(struct task_struct *task)
{
	return read_task(task, flags) & PF_KTHREAD;
}

/* Returns whether @task is the first thread of its process. */
static __always_inline bool is_first_thread(struct task_struct *task)
{
	return read_task(untrusted(task), pid) ==
	       read_task(untrusted(task), tgid);
}

/* Returns the value of pthread_self() in @task. */
static __always_inline u64 thread_pointer(struct task_struct *task)
{
	return read_task(task, THREAD_POINTER);
}

/*
 * Returns a thread's ID in the PID namespace at @level, or 0 if it cannot be read.
 * @level is less than PID_NAMESPACE_DEPTH.
 */
static __always_inline u32 number_at(struct pid *pid, u32 level)
{
	struct upid upid;

	if (bpf_core_read(&upid, sizeof(upid), &pid->numbers[level]))
		return 0;
	return upid.nr;
}

/* Returns a thread's ID in the caller's PID namespace, 0 if it has none. */
static __always_inline u32 pid_number(struct pid *pid)
{
	u32 level;

	if (!pid_namespace)
		return BPF_CORE_READ(pid, numbers[0].nr);
	level = BPF_CORE_READ(pid, level);
	for (u32 i = 0; i < PID_NAMESPACE_DEPTH; i++) {
		struct upid upid;

		if (i > level)
			break;
		if (bpf_core_read(&upid, sizeof(upid), &pid->numbers[i]))
			break;
		if (BPF_CORE_READ(upid.ns, ns.inum) == pid_namespace)
			return upid.nr;
	}
	return 0;
}

/* Returns the task's thread ID in the caller's PID namespace, 0 if it has none. */
static __always_inline u32 namespace_tid(struct task_struct *task)
{
	if (!pid_namespace)
		return BPF_CORE_READ(task, pid);
	return pid_number(BPF_CORE_READ(task, thread_pid));
}

/* Returns whether @task's own PID namespace is that of the caller. */
static __always_inline bool has_callers_ids(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level = BPF_CORE_READ(pid, level);
	struct upid upid;

	if (!pid_namespace)
		return !level;
	if (level >= PID_NAMESPACE_DEPTH ||
	    bpf_core_read(&upid, sizeof(upid), &pid->numbers[level]))
		return false;
	return BPF_CORE_READ(upid.ns, ns.inum) == pid_namespace;
}

static __always_inline u32 namespace_pid(struct task_struct *task)
{
	return namespace_tid(BPF_CORE_READ(task, group_leader));
}

/*
 * Returns the start time of the task's process, in ns of CLOCK_MONOTONIC. PID and start
 * time identify a process. A thread that replaces its leader in exec takes over the
 * start time.
 */
static __always_inline u64 process_started(struct task_struct *task)
{
	return read_task(untrusted(task), group_leader, start_time);
}

/*
 * Returns a number that identifies a program in a process. A later program with the
 * same PID, after the PID's reuse or after exec, gets a greater number. An address is
 * meaningful only together with this number. The number is the process's start time, in
 * ns of CLOCK_MONOTONIC, plus its number of execs.
 */
static __always_inline u64 process_instance(struct task_struct *task)
{
	return BPF_CORE_READ(task, group_leader, start_time) +
	       BPF_CORE_READ(task, self_exec_id);
}

/*
 * Returns the parent of @task's process if both still have the same code at the same
 * addresses since the fork, else NULL. fork copies all fields that this function
 * compares. exec increments self_exec_id and puts the stack at another random address.
 */
static __always_inline struct task_struct *
fork_of_same_code(struct task_struct *task)
{
	struct task_struct *parent;

	parent = BPF_CORE_READ(task, group_leader, real_parent, group_leader);
	if (BPF_CORE_READ(parent, self_exec_id) !=
		    BPF_CORE_READ(task, self_exec_id) ||
	    BPF_CORE_READ(parent, mm, start_stack) !=
		    BPF_CORE_READ(task, mm, start_stack) ||
	    BPF_CORE_READ(parent, mm, exec_vm) !=
		    BPF_CORE_READ(task, mm, exec_vm))
		return NULL;
	return parent;
}

/*
 * Returns the number of times that the task left a CPU. If two calls return the same
 * number for a task that is off the CPU, its stack did not change in between.
 */
static __always_inline u64 switch_count(struct task_struct *task)
{
	return read_task(task, nvcsw) + read_task(task, nivcsw);
}

/*
 * Returns the total time that a task has run, in ns, as the scheduler accounts it. For
 * a running task, the result may lack the time since the last tick.
 */
static __always_inline u64 time_run(struct task_struct *task)
{
	return task->se.sum_exec_runtime;
}

/*
 * Returns the time that the current task has run since its switch-in, in ns, as the
 * scheduler accounts it. Only the fair scheduler records the switch-in. The time of a
 * real-time task therefore starts when the fair scheduler last switched the task in.
 */
static __always_inline u64 time_since_switch_in(struct task_struct *task)
{
	return BPF_CORE_READ(task, se.sum_exec_runtime) -
	       BPF_CORE_READ(task, se.prev_sum_exec_runtime);
}

/*
 * Returns the registers that the kernel saved when @task left user space. @task must be
 * a pointer from the kernel.
 */
static __always_inline struct pt_regs *user_regs(struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (struct pt_regs *)bpf_task_pt_regs(task);
	return regs_at_stack_top(BPF_CORE_READ(task, stack));
}

/*
 * Returns whether @task has no user stack. Such a task is a kernel thread, or a kernel
 * worker of io_uring or vhost within a process. copy_thread() of
 * arch/x86/kernel/process.c clears both registers of a worker.
 */
static __always_inline bool has_no_user_stack(struct task_struct *task)
{
	struct pt_regs *regs;

	if (is_kernel_thread(task))
		return true;
	regs = user_regs(task);
	return !BPF_CORE_READ(regs, REGS_IP) && !BPF_CORE_READ(regs, REGS_SP);
}

/*
 * Reads a user register. If bpf_task_pt_regs() exists, its result has a type, so a load
 * reads the register. Otherwise a call reads it.
 */
#define read_user_register(regs, name)                                         \
	(bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs) ? \
		 (regs)->name :                                                \
		 BPF_CORE_READ(regs, name))

static __always_inline struct pt_regs *current_user_regs(void)
{
	return user_regs(current_task());
}

#endif
