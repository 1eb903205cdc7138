// SPDX-License-Identifier: MIT
/*
 * Recursion that waits and computes at its bottom, for ever.
 *
 * usage: recursion LEVELS
 * The chain is main, LEVELS times down, at_bottom, and then burn or the wait.
 */
#include "workload.h"

static volatile unsigned int salt;

NOINLINE unsigned int burn(unsigned int turns)
{
	for (volatile unsigned int turn = 0; turn < turns; turn++)
		;
	return salt;
}

NOINLINE unsigned int at_bottom(void)
{
	struct timespec left = { .tv_nsec = (long)(3 * NS_PER_MS) };

	while (!burn(1000 * 1000))
		nanosleep(&left, NULL);
	return salt;
}

NOINLINE unsigned int down(unsigned int levels)
{
	volatile unsigned char bytes[70];

	bytes[salt] = 1;
	if (levels == 1)
		return at_bottom() + bytes[salt];
	return down(levels - 1) + bytes[salt];
}

int main(int argc, char **argv)
{
	tell("ready");
	return (int)down((unsigned int)argument_or(argc, argv, 1, 100)) + 1;
}
