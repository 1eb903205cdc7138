/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Questions about a task: its IDs, its state, its user registers. */
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
 * The inode number of the caller's PID namespace, or 0 when that is the
 * initial one, whose IDs are the kernel's own.
 */
const volatile u32 pid_namespace = 0;

/*
 * Whether every task comes as a pointer that the verifier knows the type of: the
 * current one does since 5.11.
 */
static __always_inline bool tasks_have_types(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id,
					  BPF_FUNC_get_current_task_btf);
}

/* Since 6.2. Costs nothing when it runs. */
extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym __weak;

/* The ID of struct task_struct among the kernel's types, or 0. Set by user space. */
const volatile u32 task_type = 0;

/*
 * @task as a pointer that the verifier does not trust: whenever a pointer is loaded
 * by one that it trusts it looks through all types of the kernel four times, on every
 * path that leads there.
 */
static __always_inline struct task_struct *untrusted(struct task_struct *task)
{
	if (task_type && bpf_ksym_exists(bpf_rdonly_cast))
		return bpf_rdonly_cast(task, task_type);
	return task;
}

/*
 * task->a->b->..., given as task, a, b, ...: a load each where types are known,
 * else a call each. What leads to nowhere reads as 0. For what is loaded often.
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

/* What pthread_self() is in @task. */
static __always_inline u64 thread_pointer(struct task_struct *task)
{
	return read_task(task, THREAD_POINTER);
}

/* A thread's ID in the PID namespace of this depth, less than PID_NAMESPACE_DEPTH. */
static __always_inline u32 number_at(struct pid *pid, u32 level)
{
	struct upid upid;

	if (bpf_core_read(&upid, sizeof(upid), &pid->numbers[level]))
		return 0;
	return upid.nr;
}

/* A thread's ID in the caller's PID namespace, 0 when it has none. */
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

/* The task's thread ID in the caller's PID namespace, 0 when it has none. */
static __always_inline u32 namespace_tid(struct task_struct *task)
{
	if (!pid_namespace)
		return BPF_CORE_READ(task, pid);
	return pid_number(BPF_CORE_READ(task, thread_pid));
}

/* Whether the IDs that @task itself knows are those of the caller's PID namespace. */
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
 * When the task's process started, CLOCK_MONOTONIC: together with its ID, which
 * process it is. A thread that replaces its leader in exec takes that over.
 */
static __always_inline u64 process_started(struct task_struct *task)
{
	return read_task(untrusted(task), group_leader, start_time);
}

/*
 * Tells one program in one process from another that later has the same PID,
 * or replaces it by exec: addresses mean something only together with it. It
 * grows with each, in ns since boot plus a count of execs.
 */
static __always_inline u64 process_instance(struct task_struct *task)
{
	return BPF_CORE_READ(task, group_leader, start_time) +
	       BPF_CORE_READ(task, self_exec_id);
}

/*
 * The process from which @task's was forked if it still has the same code
 * where that has it; else NULL. fork copies all of this, exec counts
 * self_exec_id up and puts the stack at another random address.
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

/* How often the task has left a CPU: while that stands, so does its stack. */
static __always_inline u64 switch_count(struct task_struct *task)
{
	return read_task(task, nvcsw) + read_task(task, nivcsw);
}

/*
 * By the scheduler's own account: how long a task has run in all its life, in
 * ns. Of one that runs now the time since the last tick may be missing.
 */
static __always_inline u64 time_run(struct task_struct *task)
{
	return task->se.sum_exec_runtime;
}

/*
 * By the scheduler's own account: how long the current task has run, in ns. Of
 * one with a priority of its own, as the fair scheduler alone notes the switch,
 * since that last had it.
 */
static __always_inline u64 time_since_switch_in(struct task_struct *task)
{
	return BPF_CORE_READ(task, se.sum_exec_runtime) -
	       BPF_CORE_READ(task, se.prev_sum_exec_runtime);
}

/* The registers with which @task, a pointer from the kernel, left user space. */
static __always_inline struct pt_regs *user_regs(struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (struct pt_regs *)bpf_task_pt_regs(task);
	return regs_at_stack_top(BPF_CORE_READ(task, stack));
}

/*
 * Whether @task has no user stack: a thread of the kernel's own, or a worker of the kernel's
 * in a process (io_uring's, vhost's), of which copy_thread() clears both registers
 * (arch/x86/kernel/process.c).
 */
static __always_inline bool has_no_user_stack(struct task_struct *task)
{
	struct pt_regs *regs;

	if (is_kernel_thread(task))
		return true;
	regs = user_regs(task);
	return !BPF_CORE_READ(regs, REGS_IP) && !BPF_CORE_READ(regs, REGS_SP);
}

/* One of them: a load where the helper is there, whose types are known, else a call. */
#define read_user_register(regs, name)                                         \
	(bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs) ? \
		 (regs)->name :                                                \
		 BPF_CORE_READ(regs, name))

static __always_inline struct pt_regs *current_user_regs(void)
{
	return user_regs(current_task());
}

#endif
