// SPDX-License-Identifier: MIT
/*
 * A thread that is not the leader executes the program again, and so takes the
 * leader's ID; and there the same.
 *
 * usage: usurper ROUNDS (and, where it executes itself, the round)
 * Prints the ID of the first thread to do so, and when each was through.
 */
#include "workload.h"

static char **arguments;
static char rounds_left[32];

static void *usurp(void *unused)
{
	char *again[] = { arguments[0], rounds_left, (char *)"again", NULL };

	(void)unused;
	sleep_ns(5 * NS_PER_MS);
	execv("/proc/self/exe", again);
	check(1, "exec");
	return NULL;
}

static void *first(void *unused)
{
	tell("usurper %ld", syscall(SYS_gettid));
	tell("ready");
	await_test();
	return usurp(unused);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argument_or(argc, argv, 1, 1);
	int again = argc > 2;

	arguments = argv;
	snprintf(rounds_left, sizeof(rounds_left), "%lu", rounds - 1);
	if (again)
		tell("through %lu", now_ns());
	if (rounds) {
		start_thread_of(again ? usurp : first, NULL);
		for (;;)
			pause();
	}
	tell("done");
	await_test();
	return 0;
}
