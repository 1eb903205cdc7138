/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Spans on a CPU. A span begins and ends on the same CPU. A per-CPU map holds its
 * start, so a switch needs no lookup of a thread.
 */
#ifndef SYSTEMSCOPE_RUNNING_SPANS_H
#define SYSTEMSCOPE_RUNNING_SPANS_H

#include "clock/clock_events.h"
#include "spans/span_intervals.h"

/* True to count the idle task, as PID and TID 0. */
const volatile bool include_idle = false;

/* Open span of a CPU. */
struct running {
	/*
	 * Time at which the task got the CPU, in ns of CLOCK_MONOTONIC. If no measured
	 * task runs, time at which the last measured task left.
	 */
	u64 since;
	/* Address of the running task; 0 if it is not measured. */
	u64 task;
	u32 owner;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct running);
} running SEC(".maps");

/*
 * Returns whether the spans of @task count. In a container only the tasks of its PID
 * namespace count.
 */
static __always_inline bool has_measured_spans(struct task_struct *task,
					       u32 pid, u32 tid)
{
	if (!tid)
		return include_idle;
	return is_target(task, pid, tid) &&
	       (!pid_namespace || namespace_tid(task));
}

/* Returns the owner's ID in the caller's PID namespace. */
static __always_inline u32 span_owner_id(struct task_struct *task, u32 pid,
					 u32 tid)
{
	if (!pid_namespace)
		return span_owner == OWNER_PROCESS ? pid : tid;
	return span_owner == OWNER_PROCESS ? namespace_pid(task) :
					     namespace_tid(task);
}

/* Begins a span of @task, which is measured. */
static __always_inline void
begin_running(struct running *cpu, struct task_struct *task, u32 pid, u32 tid)
{
	cpu->task = (u64)task;
	if (span_owner != OWNER_NONE)
		cpu->owner = span_owner_id(task, pid, tid);
}

/*
 * Counts the part of a span before the end of a period. The function is out of line
 * because calls are rare.
 */
static __noinline void count_before_end(u32 slot, u32 owner, u64 length)
{
	count_span(slot, owner, length);
}

/* Counts the span from @since to @until, in two parts if a period ended in it. */
static __always_inline void end_running(struct running *cpu, u64 since,
					u64 until)
{
	u64 word = current_interval();
	u32 slot = interval_slot(word);
	u64 end = interval_end(word);

	if (until > end) {
		if (since < end) {
			count_before_end(slot, cpu->owner, end - since);
			since = end;
		}
		slot = !slot;
	}
	count_span(slot, cpu->owner, until - since);
}

static __always_inline u64 earlier(u64 one, u64 other)
{
	return one < other ? one : other;
}

/*
 * Handles a switch to @task on this CPU that the kernel did not show. Ends the span of
 * the previous task, and returns the start of @task's span. The scheduler's account
 * tells how long @task has run since, and how long the previous task ran. The account
 * has nothing for the idle task.
 */
static __noinline u64 missed_switch(struct running *cpu,
				    struct task_struct *task, u64 now)
{
	struct task_struct *before = (void *)cpu->task;
	u64 since = cpu->since, left, came;

	/* The kernel has shown no switch on this CPU yet. */
	if (!since)
		return window_start;
	/*
	 * If @task has joined the targets since, the program did not miss the switch.
	 * The span counts from the switch on.
	 */
	if (before || !by_membership)
		__sync_fetch_and_add(&lost.switches, 1);
	left = earlier(since + time_since_switch_in(before), now);
	came = BPF_CORE_READ(task, pid) ?
		       now - earlier(time_since_switch_in(task), now - since) :
		       left;
	if (before)
		end_running(cpu, since,
			    BPF_CORE_READ(before, pid) ? earlier(left, came) :
							 came);
	return came;
}

/* Handles sched_switch. */
static __always_inline int count_switch(u64 *ctx)
{
	struct task_struct *prev, *next;
	bool leaves, enters;
	struct running *cpu;
	u64 since, now;
	u32 zero = 0;

	if (switch_arguments == SWITCH_STATE_SECOND) {
		prev = (void *)ctx[2];
		next = (void *)ctx[3];
		/* The verifier allows reads of the context at constant offsets only. */
		barrier();
	} else {
		prev = (void *)ctx[1];
		next = (void *)ctx[2];
	}
	cpu = bpf_map_lookup_elem(&running, &zero);
	if (!cpu)
		return 0;
	/*
	 * @prev is measured if the open span of the CPU belongs to it. Its IDs alone do
	 * not decide, because exec may have changed them since the switch-in, or the
	 * task may have lost them.
	 */
	leaves = cpu->task == (u64)prev ||
		 has_measured_spans(prev, prev->tgid, prev->pid);
	enters = has_measured_spans(next, next->tgid, next->pid);
	if (!leaves && !enters)
		return 0;
	now = window_now();
	if (!now)
		return 0;

	since = cpu->since;
	if (cpu->task != (u64)prev && (leaves || cpu->task)) {
		since = missed_switch(cpu, prev, now);
		cpu->task = 0;
		if (leaves)
			begin_running(cpu, prev, prev->tgid, prev->pid);
	}
	if (cpu->task)
		end_running(cpu, since, now);
	cpu->task = 0;
	cpu->since = now;
	if (enters)
		begin_running(cpu, next, next->tgid, next->pid);
	return 0;
}

/*
 * Notes which task runs on the CPU after the window's start. Splits the span of a task
 * that still runs after the end of a period. User space runs this on each CPU, where no
 * switch and no other counting can interrupt it.
 */
static __always_inline int split_running(void)
{
	struct task_struct *task = current_task();
	u64 ids = bpf_get_current_pid_tgid();
	u32 pid = ids >> 32, tid = ids;
	u64 now = window_now();
	u64 word = current_interval();
	u64 since, end = interval_end(word);
	struct running *cpu;
	bool measured;
	u32 zero = 0;

	if (span_kind != SPANS_RUNNING)
		return 0;
	cpu = bpf_map_lookup_elem(&running, &zero);
	if (!cpu || !now || (cpu->since && now <= end) || cpu->since >= end)
		return 0;
	measured = has_measured_spans(task, pid, tid);
	since = cpu->since;
	if (cpu->task != (u64)task && (measured || cpu->task)) {
		since = missed_switch(cpu, task, now);
		cpu->task = 0;
		if (measured)
			begin_running(cpu, task, pid, tid);
	}
	if (!since)
		since = window_start;
	if (now > end && since < end) {
		if (cpu->task)
			count_span(interval_slot(word), cpu->owner,
				   end - since);
		since = end;
	}
	cpu->since = since;
	return 0;
}

#endif
