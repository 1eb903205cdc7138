// SPDX-License-Identifier: MIT
/*
 * A real-time thread on each CPU. The threads compute for SECONDS after the test sends a line.
 *
 * usage: real_time SECONDS
 */
#define _GNU_SOURCE
#include <sched.h>

#include "workload.h"

static uint64_t length;
static _Atomic uint32_t may_begin;

static void *compute(void *argument)
{
	const struct sched_param priority = { .sched_priority = 50 };
	cpu_set_t one;
	uint64_t end;

	CPU_ZERO(&one);
	CPU_SET((uintptr_t)argument, &one);
	name_thread("real_time");
	check(sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
	wait_while(&may_begin, 0);
	check(sched_setscheduler(0, SCHED_FIFO, &priority),
	      "sched_setscheduler");
	end = now_ns() + length;
	while (now_ns() < end)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	unsigned long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	length = argument_or(argc, argv, 1, 1) * NS_PER_S;
	for (uintptr_t cpu = 0; cpu < cpus; cpu++)
		start_thread_of(compute, (void *)cpu);
	tell("ready");
	await_test();
	set_and_wake(&may_begin, 1);
	return leave_with_test(NULL) != NULL;
}
