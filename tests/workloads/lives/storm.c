// SPDX-License-Identifier: MIT
/*
 * Very many short processes: PER_SECOND of them, if the machine can start as many.
 *
 * usage: storm PER_SECOND SECONDS [FORKERS]
 * The program prints the number of processes, and the time for them in us.
 */
#include <sys/wait.h>

#include "workload.h"

#define MAX_FORKERS 64

static unsigned long per_second;
static unsigned long seconds;
static _Atomic unsigned long processes;
static _Atomic uint32_t never;

/*
 * A child borrows the memory of its parent, and the parent waits. No other fork is as cheap.
 */
NOINLINE void one_process(void)
{
	pid_t child = vfork();

	if (!child)
		_exit(0);
	check(child < 0, "vfork");
	check(waitpid(child, NULL, 0) != child, "waitpid");
}

static void *forker(void *unused)
{
	uint64_t start = now_ns();
	uint64_t passed;
	uint64_t count = 0;

	(void)unused;
	for (;;) {
		passed = now_ns() - start;
		if (passed >= seconds * NS_PER_S)
			break;
		if (count * NS_PER_S > passed * per_second) {
			sleep_ns(100 * NS_PER_US);
			continue;
		}
		one_process();
		count++;
	}
	atomic_fetch_add(&processes, count);
	return NULL;
}

NOINLINE void storm_sleep(void)
{
	wait_while(&never, 0);
}

static void *sleeper(void *unused)
{
	(void)unused;
	name_thread("storm-sleeper");
	storm_sleep();
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long forkers = argument_or(argc, argv, 3, 2);
	pthread_t threads[MAX_FORKERS];
	uint64_t start;

	check(forkers > MAX_FORKERS, "too many forkers");
	per_second = argument_or(argc, argv, 1, 20000) / forkers;
	seconds = argument_or(argc, argv, 2, 10);
	start_thread_of(sleeper, NULL);
	tell("ready");

	await_test();
	start = now_ns();
	for (unsigned long n = 0; n < forkers; n++)
		threads[n] = start_thread_of(forker, NULL);
	for (unsigned long n = 0; n < forkers; n++)
		pthread_join(threads[n], NULL);
	tell("processes %lu took %lu", atomic_load(&processes),
	     (unsigned long)((now_ns() - start) / NS_PER_US));
	tell("done");

	await_test();
	return 0;
}
