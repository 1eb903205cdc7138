// SPDX-License-Identifier: MIT
/*
 * Two programs that wait at once and then execute each other in turn. Without address
 * randomization both have the same addresses, so the unwind table of one program is wrong for
 * the other.
 *
 * usage: execs OTHER ROUNDS WAIT_MS
 * OTHER is the same source, built with -DOTHER. The chain of a round is main, one_outer,
 * one_inner, one_wait. With -DOTHER it is main, two_outer, two_middle, two_inner, two_wait.
 */
#include <sys/personality.h>

#include "workload.h"

static volatile unsigned int salt;

#ifdef OTHER

NOINLINE int two_wait(unsigned long ms)
{
	volatile struct timespec left[30];

	left[salt].tv_sec = (time_t)(ms / 1000);
	left[salt].tv_nsec = (long)(ms % 1000 * NS_PER_MS);
	return nanosleep((const struct timespec *)&left[salt], NULL) + 1;
}

NOINLINE int two_inner(unsigned long ms)
{
	volatile unsigned char bytes[salt + 200];

	bytes[salt] = 1;
	return two_wait(ms) + bytes[salt];
}

NOINLINE int two_middle(unsigned long ms)
{
	return two_inner(ms) + 1;
}

NOINLINE int two_outer(unsigned long ms)
{
	volatile unsigned char bytes[5000];

	bytes[salt] = 1;
	return two_middle(ms) + bytes[salt];
}

#define own_round two_outer

#else

NOINLINE int one_wait(unsigned long ms)
{
	struct timespec left = {
		.tv_sec = (time_t)(ms / 1000),
		.tv_nsec = (long)(ms % 1000 * NS_PER_MS),
	};

	return nanosleep(&left, NULL) + 1;
}

NOINLINE int one_inner(unsigned long ms)
{
	volatile unsigned char bytes[60];

	bytes[salt] = 1;
	return one_wait(ms) + bytes[salt];
}

NOINLINE int one_outer(unsigned long ms)
{
	volatile unsigned char bytes[700];

	bytes[salt] = 1;
	return one_inner(ms) + bytes[salt];
}

#define own_round one_outer

#endif /* OTHER */

int main(int argc, char **argv)
{
	unsigned long rounds = argument_or(argc, argv, 2, 10);
	unsigned long ms = argument_or(argc, argv, 3, 10);
	char left[24];
	/*
	 * Gives the other program the name of this one, and a mark that it is not the first
	 * program.
	 */
	char *const next[] = { argv[1], argv[0], left, argv[3], "on", NULL };

	check(argc < 4, "usage: execs OTHER ROUNDS WAIT_MS");
	if (argc > 4) {
		own_round(ms);
	} else {
		check(personality(ADDR_NO_RANDOMIZE) < 0, "personality");
		tell("ready");
		await_test();
	}
	if (rounds) {
		snprintf(left, sizeof(left), "%lu", rounds - 1);
		execv(argv[1], next);
		perror(argv[1]);
		return 1;
	}
	tell("done");

	await_test();
	return 0;
}
