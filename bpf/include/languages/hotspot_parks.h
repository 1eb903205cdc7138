/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Objects on which the current thread of Java is parked (LockSupport.park), and the
 * threads that own them. Locks of java.util.concurrent are such objects: the class
 * AbstractOwnableSynchronizer has the owner.
 */
#ifndef SYSTEMSCOPE_HOTSPOT_PARKS_H
#define SYSTEMSCOPE_HOTSPOT_PARKS_H

#include "languages/hotspot_objects.h"

/* Object on which the current thread is parked. */
struct hotspot_park {
	/* Class of the object. */
	u64 class;
	/* Address of the thread that owns the object; 0 if there is none. */
	u64 owner;
};

/* Finds what the current thread is parked on. */
static __always_inline bool hotspot_park(struct hotspot_layout *layout,
					 struct hotspot_park *park)
{
	u64 thread, object, back, blocker, super, owner;
	u32 before, after;

	if (!layout->ownable || !hotspot_is_at_rest(layout, &before))
		return false;
	thread = hotspot_current_thread(layout);
	if (!thread ||
	    !read_user(&object, sizeof(object), thread + layout->thread_object))
		return false;
	if (layout->flags & HOTSPOT_THREAD_HAS_HANDLE &&
	    !read_user(&object, sizeof(object), object))
		return false;
	/* Threads of the machine itself have other data in place of an object. */
	if (!read_user(&back, sizeof(back), object + layout->object_thread) ||
	    back != thread)
		return false;
	blocker = hotspot_reference(layout, object + layout->park_blocker);
	if (!blocker)
		return false;
	park->class = hotspot_class(layout, blocker);
	if (!park->class || !read_user(&super, sizeof(super),
				       park->class + layout->first_super))
		return false;
	park->owner = 0;
	if (super == layout->ownable) {
		owner = hotspot_reference(layout,
					  blocker + layout->exclusive_owner);
		if (owner && !read_user(&park->owner, sizeof(park->owner),
					owner + layout->object_thread))
			park->owner = 0;
	}
	return hotspot_is_at_rest(layout, &after) && before == after;
}

#endif
