/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Lanes: every thread's intervals in the order of time, without a hole. A message has
 * one off-CPU interval of at least timeline_least ns, and the stretch before it. A
 * stretch holds running intervals and shorter intervals, as the time in each state.
 */
#ifndef SYSTEMSCOPE_LANES_H
#define SYSTEMSCOPE_LANES_H

#include "clock/thread_record.h"

static __always_inline u64 total_time(const struct state_times *times)
{
	return times->running + times->runnable + times->blocked;
}

static __always_inline bool is_kept(u64 length)
{
	return length && length >= timeline_least;
}

/* Returns whether a stretch is too long to wait for an off-CPU interval. */
static __always_inline bool is_full(const struct state_times *times)
{
	return total_time(times) >= timeline_max_stretch;
}

/* Sends @times as a stretch, if it has any time. */
static __always_inline void send_stretch(const struct clock_program *program,
					 struct thread *thread,
					 struct state_times *times)
{
	struct lane *lane = &thread->lane;
	u64 length = total_time(times);

	if (!length)
		return;
	lane->pending =
		(struct lane_part){ .start = lane->since, .stretch = *times };
	if (lane->is_wanted)
		program->send_part(thread, &lane->pending);
	lane->pending = (struct lane_part){};
	*times = (struct state_times){};
	lane->since += length;
}

/* Returns whether short intervals are long together, and most of it is off the CPU. */
static __always_inline bool stand_alone(const struct state_times *shorts)
{
	u64 length = total_time(shorts);

	return length >= timeline_least && shorts->running < length / 2;
}

/*
 * Moves the short intervals into the stretch. If they stand alone, the stretch before is
 * sent first.
 */
static __always_inline void join_shorts(const struct clock_program *program,
					struct thread *thread)
{
	struct lane *lane = &thread->lane;

	if (stand_alone(&lane->shorts))
		send_stretch(program, thread, &lane->stretch);
	lane->stretch.running += lane->shorts.running;
	lane->stretch.runnable += lane->shorts.runnable;
	lane->stretch.blocked += lane->shorts.blocked;
	lane->shorts = (struct state_times){};
}

/* The parts of add_running() and add_off_cpu() out of line: these have many callers. */
static __noinline int add_long_run(const struct clock_program *program,
				   struct thread *thread, u64 length)
{
	bool alone = stand_alone(&thread->lane.shorts);

	join_shorts(program, thread);
	if (alone || length >= timeline_max_stretch)
		send_stretch(program, thread, &thread->lane.stretch);
	thread->lane.stretch.running += length;
	if (is_full(&thread->lane.stretch))
		send_stretch(program, thread, &thread->lane.stretch);
	return 0;
}

static __noinline int send_shorts(const struct clock_program *program,
				  struct thread *thread)
{
	join_shorts(program, thread);
	send_stretch(program, thread, &thread->lane.stretch);
	return 0;
}

static __noinline int add_kept(const struct clock_program *program,
			       struct thread *thread, u64 blocked, u64 runnable)
{
	struct lane *lane = &thread->lane;
	u64 rest = is_kept(runnable) ? 0 : runnable;

	join_shorts(program, thread);
	lane->pending = (struct lane_part){
		.start = lane->since,
		.stretch = lane->stretch,
		.blocked = blocked,
		.runnable = runnable - rest,
	};
	lane->since += total_time(&lane->stretch) + blocked + runnable - rest;
	lane->stretch = (struct state_times){};
	lane->shorts.runnable = rest;
	return 0;
}

/* Adds a running interval of @length ns. */
static __always_inline void add_running(const struct clock_program *program,
					struct thread *thread, u64 length)
{
	if (!program->send_part || !want_timeline)
		return;
	if (is_kept(length)) {
		add_long_run(program, thread, length);
		return;
	}
	thread->lane.shorts.running += length;
	if (is_full(&thread->lane.shorts))
		send_shorts(program, thread);
}

/*
 * Adds an off-CPU interval of @blocked and then @runnable ns. If a part of it is to be
 * sent by itself, the part is pending from here on, until it is sent.
 */
static __always_inline void add_off_cpu(const struct clock_program *program,
					struct thread *thread, u64 blocked,
					u64 runnable)
{
	if (!program->send_part || !want_timeline)
		return;
	if (!is_kept(blocked)) {
		thread->lane.shorts.blocked += blocked;
		blocked = 0;
	}
	if (blocked || is_kept(runnable))
		add_kept(program, thread, blocked, runnable);
	else
		thread->lane.shorts.runnable += runnable;
}

/* Returns whether an off-CPU interval is to be sent by itself. */
static __always_inline bool has_pending(const struct lane *lane)
{
	return lane->pending.blocked + lane->pending.runnable;
}

/* Sends the pending part if its interval was not counted. */
static __always_inline void settle_pending(const struct clock_program *program,
					   struct thread *thread)
{
	struct lane *lane = &thread->lane;

	if (!program->send_part || !want_timeline || !has_pending(lane))
		return;
	if (lane->is_wanted)
		program->send_part(thread, &lane->pending);
	lane->pending = (struct lane_part){};
}

/* Sends the rest of the lane of a thread that ended. */
static __always_inline void end_lane(const struct clock_program *program,
				     struct thread *thread)
{
	if (!program->send_part || !want_timeline)
		return;
	settle_pending(program, thread);
	join_shorts(program, thread);
	send_stretch(program, thread, &thread->lane.stretch);
}

#endif
