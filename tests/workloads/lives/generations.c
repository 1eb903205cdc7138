// SPDX-License-Identifier: MIT
/*
 * Threads that come and go. Each thread computes, sleeps and yields in turn.
 *
 * usage: generations THREADS [AT_ONCE]
 * The program prints figures from the test's line to "done", which include ended threads: the
 * switches and the time on a CPU in ns by the kernel's account, and the number of threads.
 */
#include "workload.h"

#include <sched.h>
#include <sys/resource.h>

#define MAX_AT_ONCE 256
#define ROUNDS 100

static void burn(uint64_t ns)
{
	uint64_t start = now_ns();

	while (now_ns() - start < ns)
		;
}

NOINLINE void *live(void *unused)
{
	(void)unused;
	for (int round = 0; round < ROUNDS; round++) {
		burn(400 * NS_PER_US);
		sleep_ns(200 * NS_PER_US);
		sched_yield();
	}
	return NULL;
}

static uint64_t switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
}

static uint64_t cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * NS_PER_S + time.tv_nsec;
}

int main(int argc, char **argv)
{
	unsigned long threads = argument_or(argc, argv, 1, 60);
	unsigned long at_once = argument_or(argc, argv, 2, 8);
	pthread_t batch[MAX_AT_ONCE];
	uint64_t switches_before, cpu_before, ended = 0;

	check(at_once > MAX_AT_ONCE, "too many at once");
	tell("ready");

	await_test();
	switches_before = switches();
	cpu_before = cpu_ns();
	while (threads) {
		unsigned long size = threads < at_once ? threads : at_once;

		for (unsigned long n = 0; n < size; n++)
			batch[n] = start_thread_of(live, NULL);
		for (unsigned long n = 0; n < size; n++)
			pthread_join(batch[n], NULL);
		threads -= size;
		ended += size;
	}
	tell("threads %lu switches %lu", ended, switches() - switches_before);
	tell("cpu %lu", cpu_ns() - cpu_before);
	tell("done");

	await_test();
	return 0;
}
