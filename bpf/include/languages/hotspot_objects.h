/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Threads of a Java virtual machine, and objects with their classes. */
#ifndef SYSTEMSCOPE_HOTSPOT_OBJECTS_H
#define SYSTEMSCOPE_HOTSPOT_OBJECTS_H

#include "languages/hotspot.h"
#include "languages/pthread_values.h"
#include "task.h"

/* Returns the address of the machine's current thread; 0 if it is unknown. */
static __always_inline u64 hotspot_current_thread(struct hotspot_layout *layout)
{
	if (layout->thread_key == HOTSPOT_NO_KEY)
		return 0;
	return pthread_value(thread_pointer(current_task()),
			     layout->thread_key);
}

/* Returns the ID of the thread at @thread; 0 if there is none. */
static __always_inline u32 hotspot_thread_id(struct hotspot_layout *layout,
					     u64 thread)
{
	u64 system, self;
	u32 id;

	/* The thread's own value leads back to it. */
	if (!read_user(&system, sizeof(system),
		       thread + layout->system_thread) ||
	    !read_user(&self, sizeof(self), system + layout->pthread_id) ||
	    pthread_value(self, layout->thread_key) != thread ||
	    !read_user(&id, sizeof(id), system + layout->thread_id))
		return 0;
	return id;
}

/* Returns the address of the class of @object; 0 if it is unknown. */
static __always_inline u64 hotspot_class(struct hotspot_layout *layout,
					 u64 object)
{
	u64 class;
	u32 value;

	if (!layout->class_offset)
		return 0;
	if (layout->flags & HOTSPOT_CLASS_IS_ADDRESS)
		return read_user(&class, sizeof(class),
				 object + layout->class_offset) ?
			       class :
			       0;
	if (!read_user(&value, sizeof(value), object + layout->class_offset) ||
	    !value)
		return 0;
	return layout->class_base + ((u64)value << (layout->class_shift & 63));
}

/* Returns the address of the object to which the field at @field refers; 0 if unknown. */
static __always_inline u64 hotspot_reference(struct hotspot_layout *layout,
					     u64 field)
{
	u64 object;
	u32 value;

	if (layout->flags & HOTSPOT_REFERENCE_IS_ADDRESS)
		return read_user(&object, sizeof(object), field) ? object : 0;
	if (!read_user(&value, sizeof(value), field) || !value)
		return 0;
	return layout->reference_base +
	       ((u64)value << (layout->reference_shift & 63));
}

/*
 * Reads the number of collections in @count. Returns whether no collection runs. If both
 * hold before and after objects are read, no collector moved them meanwhile. Collectors
 * that move objects at any time have no such layout.
 */
static __always_inline bool hotspot_is_at_rest(struct hotspot_layout *layout,
					       u32 *count)
{
	u8 collects;

	return read_user(&collects, sizeof(collects), layout->collects) &&
	       !collects &&
	       read_user(count, sizeof(*count),
			 layout->collects + layout->collection_count);
}

#endif
