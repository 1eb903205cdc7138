// SPDX-License-Identifier: MIT
/*
 * Short sleeps over and over. Each sleep is at the end of another path of calls, LEVELS deep,
 * so no two sleeps have the same stack.
 *
 * usage: flood [LEVELS]
 * The program runs until the test sends a line, and then prints the number of sleeps.
 */
#include "workload.h"

static int levels;

NOINLINE void left(uint64_t path, int level);
NOINLINE void right(uint64_t path, int level);

ALWAYS_INLINE void descend(uint64_t path, int level)
{
	if (level == levels)
		sleep_ns(20 * NS_PER_US);
	else if (path >> level & 1)
		right(path, level + 1);
	else
		left(path, level + 1);
}

void left(uint64_t path, int level)
{
	descend(path, level);
	asm volatile("");
}

void right(uint64_t path, int level)
{
	descend(path, level);
	asm volatile("");
}

static void *flood(void *count)
{
	for (;;) {
		descend(*(volatile uint64_t *)count, 0);
		++*(volatile uint64_t *)count;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static uint64_t count;

	levels = (int)argument_or(argc, argv, 1, 40);
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	tell("ready");

	await_test();
	start_thread_of(flood, &count);
	await_test();
	tell("count %lu", *(volatile uint64_t *)&count);
	tell("done");
	return 0;
}
