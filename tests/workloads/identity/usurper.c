// SPDX-License-Identifier: MIT
/*
 * Thread that is not the leader and executes the program again. The thread thereby takes the
 * leader's ID. A thread of the new program does the same.
 *
 * usage: usurper ROUNDS (the program adds an argument when it executes itself)
 * The program prints the ID of the first such thread, and the time after each execution.
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
