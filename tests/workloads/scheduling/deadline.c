// SPDX-License-Identifier: MIT
/*
 * Thread under SCHED_DEADLINE that may run for 10 ms in each 100 ms. It computes all the time,
 * or it runs for a moment and gives the rest of its budget back.
 *
 * usage: deadline compute|yield
 */
#define _GNU_SOURCE
#include <sched.h>

#include "workload.h"

/* SCHED_DEADLINE of include/uapi/linux/sched.h. */
#define DEADLINE 6

/* SCHED_ATTR_SIZE_VER0 of include/uapi/linux/sched/types.h. */
struct attributes {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime;
	uint64_t deadline;
	uint64_t period;
};

static void *work(void *argument)
{
	const struct attributes attributes = {
		.size = sizeof(attributes),
		.policy = DEADLINE,
		.runtime = 10 * NS_PER_MS,
		.deadline = 100 * NS_PER_MS,
		.period = 100 * NS_PER_MS,
	};
	const char *how = argument;

	name_thread("deadline");
	check(syscall(SYS_sched_setattr, 0, &attributes, 0) != 0,
	      "sched_setattr");
	tell("ready");
	for (;;) {
		if (*how == 'y')
			sched_yield();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	check(argc < 2, "usage");
	start_thread_of(work, argv[1]);
	return leave_with_test(NULL) != NULL;
}
