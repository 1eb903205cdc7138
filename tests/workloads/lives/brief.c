// SPDX-License-Identifier: MIT
/*
 * Program that forks children one after the other. Each child pauses, and then executes this
 * program without children, which computes and ends. Its chain is main, brief_life.
 *
 * usage: brief CHILDREN LIFE_MS PAUSE_MS
 */
#include <sys/wait.h>

#include "workload.h"

NOINLINE void brief_life(uint64_t ns)
{
	struct timespec spent;

	do {
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
	} while ((uint64_t)spent.tv_nsec < ns && !spent.tv_sec);
}

int main(int argc, char **argv)
{
	unsigned long children = argument_or(argc, argv, 1, 6);
	uint64_t life_ns = argument_or(argc, argv, 2, 25) * NS_PER_MS;
	uint64_t pause_ns = argument_or(argc, argv, 3, 600) * NS_PER_MS;
	pid_t child;

	if (!children) {
		brief_life(life_ns);
		return 0;
	}
	tell("ready");
	await_test();
	for (unsigned long n = 0; n < children; n++) {
		child = fork();
		check(child < 0, "fork");
		if (!child) {
			sleep_ns(pause_ns);
			check(execl("/proc/self/exe", argv[0], "0", argv[2],
				    NULL) < 0,
			      "execute itself");
		}
		check(waitpid(child, NULL, 0) != child, "waitpid");
	}
	tell("done");

	await_test();
	return 0;
}
