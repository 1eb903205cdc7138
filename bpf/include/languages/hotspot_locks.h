/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Objects on which the current thread of Java waits, and the threads that hold them. */
#ifndef SYSTEMSCOPE_HOTSPOT_LOCKS_H
#define SYSTEMSCOPE_HOTSPOT_LOCKS_H

#include "languages/hotspot_monitors.h"
#include "languages/hotspot_parks.h"

/*
 * Returns the ID of the thread that holds the object on which the current thread waits; 0
 * if it is unknown. LOCK_IS_CERTAIN is set if the thread enters a monitor.
 */
static __always_inline u32
hotspot_lock_holder(struct language_layout *of_machine, u64 base, u64 futex)
{
	struct hotspot_layout *layout =
		LAYOUT_OF(of_machine, struct hotspot_layout);
	struct hotspot_wait wait = {};
	struct hotspot_park park;

	if (hotspot_wait(layout, &wait))
		return hotspot_monitor_holder(layout, &wait);
	if (!hotspot_park(layout, &park) || !park.owner)
		return 0;
	return hotspot_thread_id(layout, park.owner) & ~LOCK_LANGUAGE;
}

/*
 * Returns the class of the object on which the current thread waits; 0 if there is none,
 * or if the class is unknown.
 */
static __always_inline u64 hotspot_lock_class(struct language_layout *of_machine)
{
	struct hotspot_layout *layout =
		LAYOUT_OF(of_machine, struct hotspot_layout);
	struct hotspot_wait wait = {};
	struct hotspot_park park;
	u64 class;

	if (hotspot_wait(layout, &wait)) {
		/* A collector that moves the object overwrites its mark. */
		if (!hotspot_is_monitor(&wait))
			return 0;
		class = hotspot_class(layout, wait.object);
		return hotspot_is_monitor(&wait) ? class : 0;
	}
	return hotspot_park(layout, &park) ? park.class : 0;
}

#endif
