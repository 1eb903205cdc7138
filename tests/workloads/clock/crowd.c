// SPDX-License-Identifier: MIT
/*
 * Process with many threads. Each thread is busy for a moment, and asleep for longer.
 *
 * usage: crowd [THREADS, main included [BUSY_US [IDLE_MS]]]
 */
#include "workload.h"

static uint64_t busy_ns;
static uint64_t idle_ns;

NOINLINE void busy(void)
{
	uint64_t end = now_ns() + busy_ns;

	while (now_ns() < end)
		;
}

NOINLINE void idle(void)
{
	sleep_ns(idle_ns);
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

	busy_ns = argument_or(argc, argv, 2, 100) * NS_PER_US;
	idle_ns = argument_or(argc, argv, 3, 20) * NS_PER_MS;
	for (unsigned long n = 1; n < threads; n++)
		start_thread_of(member, NULL);
	tell("ready");

	await_test();
	return 0;
}
