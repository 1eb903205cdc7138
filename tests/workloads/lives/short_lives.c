// SPDX-License-Identifier: MIT
/*
 * Very many threads that do next to nothing, a few of them alive at a time, and then a thread
 * that sleeps.
 *
 * usage: short_lives THREADS [ALIVE]
 */
#include "workload.h"

#define MAX_ALIVE 1024

static _Atomic uint32_t never;

NOINLINE void *short_life(void *unused)
{
	(void)unused;
	sleep_ns(NS_PER_US);
	return NULL;
}

NOINLINE void late_sleep(void)
{
	wait_while(&never, 0);
}

NOINLINE void *late_sleeper(void *unused)
{
	(void)unused;
	name_thread("late-sleeper");
	tell("late-sleeper %ld late-up %lu", syscall(SYS_gettid), now_ns());
	late_sleep();
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long threads = argument_or(argc, argv, 1, 45000);
	unsigned long alive = argument_or(argc, argv, 2, 16);
	pthread_t batch[MAX_ALIVE];

	check(alive > MAX_ALIVE, "too many alive");
	tell("ready");

	await_test();
	while (threads) {
		unsigned long size = threads < alive ? threads : alive;

		for (unsigned long n = 0; n < size; n++)
			batch[n] = start_thread_of(short_life, NULL);
		for (unsigned long n = 0; n < size; n++)
			pthread_join(batch[n], NULL);
		threads -= size;
	}
	start_thread_of(late_sleeper, NULL);
	sleep_ns(500 * NS_PER_MS);
	tell("late-over %lu", now_ns());
	tell("done");

	await_test();
	return 0;
}
