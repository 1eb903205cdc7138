// SPDX-License-Identifier: MIT
/*
 * Threads that compute until the time is over. If there are more threads than CPUs, each
 * thread must wait for its turn.
 *
 * usage: spinners THREADS SECONDS
 */
#include "workload.h"

static _Atomic uint32_t gate;
static _Atomic uint32_t at_gate;
static _Atomic uint32_t never;
static _Atomic int stop;

NOINLINE void spin(void)
{
	while (!atomic_load_explicit(&stop, memory_order_relaxed))
		;
}

NOINLINE void *spinner(void *unused)
{
	(void)unused;
	name_thread("spinner");
	atomic_fetch_add(&at_gate, 1);
	wait_while(&gate, 0);
	spin();
	wait_while(&never, 0);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long threads = argument_or(argc, argv, 1, 4);
	uint64_t seconds = argument_or(argc, argv, 2, 3);

	for (unsigned long n = 0; n < threads; n++)
		start_thread_of(spinner, NULL);
	while (atomic_load(&at_gate) < threads)
		sleep_ns(NS_PER_MS);
	tell("ready");

	await_test();
	set_and_wake(&gate, 1);
	sleep_ns(seconds * NS_PER_S);
	atomic_store(&stop, 1);
	tell("done");

	await_test();
	return 0;
}
