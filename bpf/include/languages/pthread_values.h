/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Reads the values that pthread_setspecific() stores for each thread.
 *
 * shared/languages/src/pthread_values.rs has the same algorithm for user space.
 */
#ifndef SYSTEMSCOPE_PTHREAD_VALUES_H
#define SYSTEMSCOPE_PTHREAD_VALUES_H

#include "stacks/user_memory.h"

/* struct pthread of glibc's nptl/descr.h: values of the first keys, and of the others. */
#define PTHREAD_FIRST_VALUES 0x310
#define PTHREAD_VALUES 0x510
#define PTHREAD_VALUES_AT_ONCE 32
#define PTHREAD_MOST_KEYS 1024
/* The value is the second word of struct pthread_key_data. */
#define PTHREAD_VALUE_BYTES 16
#define PTHREAD_VALUE 8

/*
 * Returns the value of @key for the thread whose pthread_self() is @self, or 0 if it
 * has none.
 */
static __always_inline u64 pthread_value(u64 self, u32 key)
{
	u64 value, values = self + PTHREAD_FIRST_VALUES;

	if (key >= PTHREAD_MOST_KEYS)
		return 0;
	if (key >= PTHREAD_VALUES_AT_ONCE &&
	    (!read_user(&values, sizeof(values),
			self + PTHREAD_VALUES +
				key / PTHREAD_VALUES_AT_ONCE * sizeof(u64)) ||
	     !values))
		return 0;
	values += key % PTHREAD_VALUES_AT_ONCE * PTHREAD_VALUE_BYTES;
	if (!read_user(&value, sizeof(value), values + PTHREAD_VALUE))
		return 0;
	return value;
}

#endif
