/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Spans on a CPU. One begins and ends on the same CPU, so that is where its
 * beginning is kept, and no thread has to be looked up at a switch.
 */
#ifndef SYSTEMSCOPE_RUNNING_SPANS_H
#define SYSTEMSCOPE_RUNNING_SPANS_H

#include "clock/clock_events.h"
#include "spans/span_intervals.h"

/* Whether the idle task counts, as PID and TID 0. */
const volatile bool include_idle = false;

/* Who runs on a CPU. */
struct running {
	/* When it came; or if nobody measured runs, when the last one left. */
	u64 since;
	/* The task, 0 if it is not measured. */
	u64 task;
	u32 owner;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct running);
} running SEC(".maps");

/* Whether the spans of @task count. A container shows its own only. */
static __always_inline bool runs_measured(struct task_struct *task, u32 pid,
					  u32 tid)
{
	if (!tid)
		return include_idle;
	return is_target(task, pid, tid) &&
	       (!pid_namespace || namespace_tid(task));
}

/* In the caller's PID namespace. */
static __always_inline u32 span_owner_id(struct task_struct *task, u32 pid,
					 u32 tid)
{
	if (!pid_namespace)
		return span_owner == OWNER_PROCESS ? pid : tid;
	return span_owner == OWNER_PROCESS ? namespace_pid(task) :
					     namespace_tid(task);
}

/* @task, which is measured, runs from now on. */
static __always_inline void
begin_running(struct running *cpu, struct task_struct *task, u32 pid, u32 tid)
{
	cpu->task = (u64)task;
	if (span_owner != OWNER_NONE)
		cpu->owner = span_owner_id(task, pid, tid);
}

/* Out of line, as it is rare: the part before the end of the interval. */
static __noinline void count_before_end(u32 slot, u32 owner, u64 length)
{
	count_span(slot, owner, length);
}

/* Counts the span from @since to @until, in pieces if an interval ended in it. */
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
 * @task runs here, and its switch-in was not shown to us. The scheduler's own
 * account tells how long it ran since, and how long the one before it did; of
 * the idle task nothing is booked. Ends the span of the one before, and returns
 * when that of @task began.
 */
static __noinline u64 missed_switch(struct running *cpu,
				    struct task_struct *task, u64 now)
{
	struct task_struct *before = (void *)cpu->task;
	u64 since = cpu->since, left, came;

	/* Nobody looked here yet. */
	if (!since)
		return window_start;
	/* Or it has joined since: then its turn counts from the switch on. */
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

/* At sched_switch. */
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
		/* The context may only be read at places that are constant. */
		barrier();
	} else {
		prev = (void *)ctx[1];
		next = (void *)ctx[2];
	}
	cpu = bpf_map_lookup_elem(&running, &zero);
	if (!cpu)
		return 0;
	/* Its ID may have changed since it came, in exec, or be gone. */
	leaves = cpu->task == (u64)prev ||
		 runs_measured(prev, prev->tgid, prev->pid);
	enters = runs_measured(next, next->tgid, next->pid);
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
 * Run on each CPU by user space, where it cannot meet a switch, nor anything
 * else that counts. Where spans are on a CPU, it notes who runs there after the
 * window's start, and splits the span of whoever still does after the end of an
 * interval.
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
	measured = runs_measured(task, pid, tid);
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
