/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Messages of a timeline: parts of lanes, samples, and names of threads. The messages
 * have their own ring buffer, so they do not delay stacks.
 */
#ifndef SYSTEMSCOPE_TIMELINE_H
#define SYSTEMSCOPE_TIMELINE_H

#include "clock/lane.h"
#include "counts.h"
#include "targets/filter.h"
#include "window.h"

enum timeline_kind {
	TIMELINE_LANE,
	TIMELINE_SAMPLE,
	TIMELINE_RENAME,
	TIMELINE_EXEC,
};

USER_SPACE_KNOWS(enum, timeline_kind);

struct sample_event {
	u32 kind;
	u32 cpu;
	/* In ns of CLOCK_MONOTONIC. */
	u64 time;
	struct stack_key key;
};

USER_SPACE_KNOWS(struct, sample_event);

/* A thread has the name @comm since @time. */
struct name_event {
	u32 kind;
	u32 unused;
	u64 time;
	/* In the caller's PID namespace. */
	u32 pid;
	u32 tid;
	u8 comm[COMM_LENGTH];
};

USER_SPACE_KNOWS(struct, name_event);

/* User space shrinks the buffer to a page if it asks for no timeline. */
#define TIMELINE_BYTES (8 << 20)

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, TIMELINE_BYTES);
} timeline SEC(".maps");

/* Number of messages of the timeline that found no capacity. */
volatile u64 timeline_lost = 0;

/* Returns the flags for a message: user space is woken once the buffer is half full. */
static __always_inline u64 timeline_flags(void)
{
	u64 waiting = bpf_ringbuf_query(&timeline, BPF_RB_AVAIL_DATA);

	return waiting < TIMELINE_BYTES / 2 ? BPF_RB_NO_WAKEUP :
					      BPF_RB_FORCE_WAKEUP;
}

/* Sends that the current thread, which is counted under @key, was sampled at @now. */
static __always_inline void send_sample(const struct stack_key *key, u64 now)
{
	struct sample_event *event;

	event = bpf_ringbuf_reserve(&timeline, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&timeline_lost, 1);
		return;
	}
	event->kind = TIMELINE_SAMPLE;
	event->cpu = bpf_get_smp_processor_id();
	event->time = now;
	event->key = *key;
	bpf_ringbuf_submit(event, timeline_flags());
}

/* Sends that @task has the name @comm from now on. */
static __always_inline int send_name(struct task_struct *task, const void *comm,
				     enum timeline_kind kind)
{
	struct name_event *event;
	u64 now = window_now();

	if (!now || window_is_over(now) ||
	    !is_target(task, task->tgid, task->pid))
		return 0;
	event = bpf_ringbuf_reserve(&timeline, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&timeline_lost, 1);
		return 0;
	}
	event->kind = kind;
	event->unused = 0;
	event->time = now;
	event->pid = namespace_pid(task);
	event->tid = namespace_tid(task);
	__builtin_memset(event->comm, 0, COMM_LENGTH);
	bpf_probe_read_kernel_str(event->comm, COMM_LENGTH, comm);
	bpf_ringbuf_submit(event, timeline_flags());
	return 0;
}

#endif
