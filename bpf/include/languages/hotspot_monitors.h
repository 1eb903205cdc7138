/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Monitors of Java on which the current thread waits: the class of the object, and the
 * thread that holds the monitor.
 *
 * A monitor names its owner in one of four ways (objectMonitor.hpp): the thread, an
 * address in the thread's stack, the ID that the thread has in the machine, or not at
 * all. In the last case the object is in the thread's stack of locks.
 */
#ifndef SYSTEMSCOPE_HOTSPOT_MONITORS_H
#define SYSTEMSCOPE_HOTSPOT_MONITORS_H

#include "languages/hotspot_objects.h"

/* Value of ObjectMonitor::_owner: a thread that is in no other field. */
#define HOTSPOT_OWNER_ANONYMOUS 1
/* Bit of an object's mark: the rest is the address of the monitor. */
#define HOTSPOT_MARK_OF_MONITOR 2
/* Value of ObjectMonitor::_owner: the machine takes the monitor back. */
#define HOTSPOT_OWNER_DEFLATING (~0ULL)

/* Monitor on which the current thread waits. */
struct hotspot_wait {
	/* Address of the thread. */
	u64 thread;
	u64 monitor;
	u64 owner;
	/* Object of the monitor; 0 if unknown. */
	u64 object;
	u32 is_pending;
	u32 unused;
};

/* Reads the monitor on which the current thread waits, in @wait. */
static __always_inline bool hotspot_wait(struct hotspot_layout *layout,
					 struct hotspot_wait *wait)
{
	u64 monitor;

	wait->thread = hotspot_current_thread(layout);
	if (!wait->thread || !read_user(&monitor, sizeof(monitor),
					wait->thread + layout->pending_monitor))
		return false;
	wait->is_pending = !!monitor;
	if (!monitor && (!read_user(&monitor, sizeof(monitor),
				    wait->thread + layout->waiting_monitor) ||
			 !monitor))
		return false;
	wait->monitor = monitor;
	if (!read_user(&wait->owner, sizeof(wait->owner),
		       monitor + layout->monitor_owner))
		return false;
	if (!read_user(&wait->object, sizeof(wait->object),
		       monitor + layout->monitor_object))
		wait->object = 0;
	if (layout->flags & HOTSPOT_OBJECT_HAS_HANDLE &&
	    !read_user(&wait->object, sizeof(wait->object), wait->object))
		wait->object = 0;
	return true;
}

/*
 * Returns whether the monitor's object leads back to the monitor. Threads of the machine
 * itself have other data where a thread of Java has its monitor.
 */
static __always_inline bool hotspot_is_monitor(struct hotspot_wait *wait)
{
	u64 mark;

	return wait->object && read_user(&mark, sizeof(mark), wait->object) &&
	       mark == (wait->monitor | HOTSPOT_MARK_OF_MONITOR);
}

/* Returns whether the thread at @thread holds the monitor of @wait. */
static __always_inline bool hotspot_holds(struct hotspot_layout *layout,
					  struct hotspot_wait *wait, u64 thread)
{
	u64 words[2], locked, low = layout->lock_stack;
	u32 top;

	if (wait->owner == HOTSPOT_OWNER_ANONYMOUS) {
		if (!low || !wait->object ||
		    !read_user(&top, sizeof(top),
			       thread + layout->lock_stack_top))
			return false;
		for (u32 i = 0; i < HOTSPOT_LOCK_STACK; i++) {
			if (low + i * sizeof(u64) >= top)
				return false;
			if (read_user(&locked, sizeof(locked),
				      thread + low + i * sizeof(u64)) &&
			    locked == wait->object)
				return true;
		}
		return false;
	}
	if (layout->owner_id)
		return read_user(&locked, sizeof(locked),
				 thread + layout->owner_id) &&
		       locked == wait->owner;
	/* The size of the stack follows its base, which is the highest address. */
	return read_user(words, sizeof(words), thread + layout->stack_base) &&
	       words[0] - wait->owner - 1 < words[1];
}

/*
 * Returns the ID of the thread that holds the monitor of @wait which the current thread
 * enters, and LOCK_IS_CERTAIN; 0 if the thread enters no monitor. The ID is 0 if it is
 * unknown.
 */
static __always_inline u32 hotspot_monitor_holder(struct hotspot_layout *layout,
						  struct hotspot_wait *wait)
{
	bool is_chain = layout->flags & HOTSPOT_THREADS_ARE_CHAIN;
	u64 thread = 0, list = 0;
	u32 id, length = HOTSPOT_THREADS;

	if (!wait->is_pending || !hotspot_is_monitor(wait))
		return 0;
	if (!wait->owner || wait->owner == HOTSPOT_OWNER_DEFLATING)
		return LOCK_IS_CERTAIN;
	if (!layout->owner_id && wait->owner != HOTSPOT_OWNER_ANONYMOUS) {
		id = hotspot_thread_id(layout, wait->owner);
		if (id)
			return (id & ~LOCK_LANGUAGE) | LOCK_IS_CERTAIN;
	}
	if (!read_user(&list, sizeof(list), layout->threads))
		return LOCK_IS_CERTAIN;
	thread = list;
	if (!is_chain &&
	    (!read_user(&length, sizeof(length), list + layout->list_length) ||
	     !read_user(&list, sizeof(list), list + layout->list_array)))
		return LOCK_IS_CERTAIN;
	for (u32 i = 0; i < HOTSPOT_THREADS; i++) {
		if (i >= length)
			break;
		if (is_chain ? i && !read_user(&thread, sizeof(thread),
					       thread + layout->next_thread) :
			       !read_user(&thread, sizeof(thread),
					  list + i * sizeof(u64)))
			break;
		if (!thread)
			break;
		if (thread != wait->thread &&
		    hotspot_holds(layout, wait, thread)) {
			id = hotspot_thread_id(layout, thread);
			return (id & ~LOCK_LANGUAGE) | LOCK_IS_CERTAIN;
		}
	}
	return LOCK_IS_CERTAIN;
}

#endif
