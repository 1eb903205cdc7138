// SPDX-License-Identifier: MIT
/*
 * Binary tree of calls, 12 levels deep by default. Each of its 4,096 paths of left and right
 * ends in a short computation and a short sleep.
 *
 * usage: paths [ROUNDS [LEVELS [TURNS]]]
 * A computation is TURNS turns of an empty loop. The default of 3,000 takes some us. The
 * program prints the number of sleeps that ended before the thread had left its CPU.
 */
#include <sys/resource.h>

#include "workload.h"

static int levels;
static unsigned long unswitched;
static volatile unsigned long burn_turns;

NOINLINE void left(unsigned int path, int level);
NOINLINE void right(unsigned int path, int level);

static long voluntary_switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

NOINLINE void leaf(void)
{
	long before;

	for (volatile unsigned long turn = 0; turn < burn_turns; turn++)
		;
	before = voluntary_switches();
	sleep_ns(100 * NS_PER_US);
	unswitched += voluntary_switches() == before;
}

ALWAYS_INLINE void descend(unsigned int path, int level)
{
	if (level == levels)
		leaf();
	else if (path >> level & 1)
		right(path, level + 1);
	else
		left(path, level + 1);
}

void left(unsigned int path, int level)
{
	descend(path, level);
}

void right(unsigned int path, int level)
{
	descend(path, level);
}

NOINLINE void root_of_tree(unsigned int path)
{
	descend(path, 0);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argument_or(argc, argv, 1, 2);

	levels = (int)argument_or(argc, argv, 2, 12);
	burn_turns = argument_or(argc, argv, 3, 3000);
	/*
	 * With slack the sampling timer would also end the sleeps, and would never find the
	 * program running.
	 */
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	tell("ready");

	await_test();
	for (unsigned long round = 0; round < rounds; round++)
		for (unsigned int path = 0; path < 1U << levels; path++)
			root_of_tree(path);
	tell("unswitched %lu", unswitched);
	tell("done");

	await_test();
	return 0;
}
