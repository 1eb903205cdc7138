// SPDX-License-Identifier: MIT
/*
 * Processes that come and go without end, with their threads and mappings.
 *
 * usage: churn PROCESSES_PER_SECOND
 */
#include <sys/wait.h>

#include "workload.h"

#define THREADS 4
#define PAGES 64

NOINLINE void burn_a_little(void)
{
	uint64_t end = now_ns() + 300 * NS_PER_US;

	while (now_ns() < end)
		;
}

NOINLINE void *short_thread(void *unused)
{
	(void)unused;
	for (int round = 0; round < 3; round++) {
		burn_a_little();
		sleep_ns(NS_PER_MS);
	}
	return NULL;
}

NOINLINE void short_process(void)
{
	size_t length = PAGES * (size_t)getpagesize();
	pthread_t threads[THREADS];
	void *code;

	code = mmap(NULL, length, PROT_READ | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(code == MAP_FAILED, "mmap");
	for (int n = 0; n < THREADS; n++)
		threads[n] = start_thread_of(short_thread, NULL);
	for (int n = 0; n < THREADS; n++)
		pthread_join(threads[n], NULL);
	munmap(code, length);
}

int main(int argc, char **argv)
{
	uint64_t pause_ns = NS_PER_S / argument_or(argc, argv, 1, 50);
	pid_t child;

	start_thread_of(leave_with_test, NULL);
	tell("ready");
	for (;;) {
		sleep_ns(pause_ns);
		child = fork();
		check(child < 0, "fork");
		if (!child) {
			short_process();
			_exit(0);
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}
