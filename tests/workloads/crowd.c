// SPDX-License-Identifier: MIT
/*
 * A process of many threads, each busy for a moment and asleep for longer.
 *
 * usage: crowd [THREADS, main included]
 */
#include "workload.h"

NOINLINE void busy(void)
{
	uint64_t end = now_ns() + 100 * NS_PER_US;

	while (now_ns() < end)
		;
}

NOINLINE void idle(void)
{
	sleep_ns(20 * NS_PER_MS);
}

NOINLINE void *member(void *unused)
{
	(void)unused;
	name_thread("member");
	for (;;) {
		busy();
		idle();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long threads = argument_or(argc, argv, 1, 65);

	for (unsigned long n = 1; n < threads; n++)
		start_thread_of(member, NULL);
	tell("ready");

	await_test();
	return 0;
}
