// SPDX-License-Identifier: MIT
/*
 * Program that forks children one after the other. Each child waits at once, twice.
 *
 * usage: forks CHILDREN WAIT_MS (0: for ever)
 * The chain of a child is main, fork_one, child_outer, child_inner, child_wait.
 */
#include <sys/wait.h>

#include "workload.h"

static volatile unsigned int salt;

NOINLINE int child_wait(unsigned long ms)
{
	struct timespec left = {
		.tv_sec = (time_t)(ms ? ms / 1000 : 1000),
		.tv_nsec = (long)(ms % 1000 * NS_PER_MS),
	};

	return nanosleep(&left, NULL) + 1;
}

NOINLINE int child_inner(unsigned long ms)
{
	volatile unsigned char bytes[salt + 300];

	bytes[salt] = 1;
	return child_wait(ms) + bytes[salt];
}

NOINLINE int child_outer(unsigned long ms)
{
	volatile unsigned char bytes[1000];

	bytes[salt] = 1;
	return child_inner(ms) + bytes[salt];
}

NOINLINE pid_t fork_one(unsigned long ms)
{
	volatile pid_t child = fork();

	check(child < 0, "fork");
	if (!child) {
		child_outer(ms);
		child_outer(ms);
		_exit(0);
	}
	return child;
}

int main(int argc, char **argv)
{
	unsigned long children = argument_or(argc, argv, 1, 10);
	unsigned long ms = argument_or(argc, argv, 2, 10);
	pid_t child;

	tell("ready");

	await_test();
	for (unsigned long n = 0; n < children; n++) {
		child = fork_one(ms);
		if (!ms) {
			tell("child %d", child);
			break;
		}
		check(waitpid(child, NULL, 0) != child, "waitpid");
	}
	tell("done");

	await_test();
	return 0;
}
