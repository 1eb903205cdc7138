/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Messages of a timeline about lanes. */
#ifndef SYSTEMSCOPE_LANE_EVENTS_H
#define SYSTEMSCOPE_LANE_EVENTS_H

#include "clock/lanes.h"
#include "timeline.h"

struct lane_event {
	u32 kind;
	/* 1 if the off-CPU interval is counted under @key; else only its thread is set. */
	u32 is_counted;
	struct lane_part part;
	struct stack_key key;
};

USER_SPACE_KNOWS(struct, lane_event);

/* Sends a part of the lane of the thread in @key. @is_counted: see struct lane_event. */
static __noinline int send_lane(const struct stack_key *key,
				const struct lane_part *part, bool is_counted)
{
	struct lane_event *event;

	event = bpf_ringbuf_reserve(&timeline, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&timeline_lost, 1);
		return 0;
	}
	event->kind = TIMELINE_LANE;
	event->is_counted = is_counted;
	event->part = *part;
	event->key = *key;
	bpf_ringbuf_submit(event, timeline_flags());
	return 0;
}

/*
 * Sends a part of the lane of @thread, whose off-CPU interval is not counted. The
 * function is out of line so that its key takes no space on the stack of the
 * sched_switch program.
 */
static __noinline int send_uncounted(const struct thread *thread,
				     const struct lane_part *part)
{
	struct stack_key key = { .pid = thread->pid, .tid = thread->tid };

	return send_lane(&key, part, false);
}

/*
 * Sends the pending part of the lane of @thread, whose off-CPU interval is counted
 * under @key.
 */
static __always_inline void send_counted(struct thread *thread,
					 const struct stack_key *key)
{
	struct lane *lane = &thread->lane;

	/* A sampled interval stands for others. */
	if (!want_timeline || key->period || !has_pending(lane))
		return;
	if (lane->is_wanted)
		send_lane(key, &lane->pending, true);
	lane->pending = (struct lane_part){};
}

#endif
