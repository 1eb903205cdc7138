// SPDX-License-Identifier: MIT
/*
 * Turns on a CPU with sleeps in between. The program measures the lengths of both.
 *
 * usage: turns [TURNS [SHORTEST_US [OCTAVES [SLEEP_US]]]]
 * The program runs at a real-time priority, so that no thread cuts a turn short. The lengths
 * of turns spread evenly from SHORTEST_US over OCTAVES powers of two. The program prints "turn
 * NS" and "sleep NS" for each turn.
 */
#include "workload.h"

#include <sched.h>

#define MAX_TURNS 10000

static uint64_t turns[MAX_TURNS];
static uint64_t sleeps[MAX_TURNS];

static uint64_t length_of(uint64_t turn, uint64_t shortest, uint64_t octaves)
{
	uint64_t octave = shortest << turn % octaves;

	return octave + octave * (turn / octaves * 37 % 100) / 100;
}

int main(int argc, char **argv)
{
	unsigned long count = argument_or(argc, argv, 1, 1000);
	uint64_t shortest = argument_or(argc, argv, 2, 500) * NS_PER_US;
	uint64_t octaves = argument_or(argc, argv, 3, 4);
	uint64_t sleep = argument_or(argc, argv, 4, 1000) * NS_PER_US;
	struct sched_param priority = { .sched_priority = 1 };
	uint64_t start, end;

	check(sched_setscheduler(0, SCHED_FIFO, &priority), "SCHED_FIFO");
	check(mlockall(MCL_CURRENT | MCL_FUTURE), "mlockall");
	memset(turns, 1, sizeof(turns));
	memset(sleeps, 1, sizeof(sleeps));
	if (count > MAX_TURNS)
		count = MAX_TURNS;
	tell("ready");

	await_test();
	start = now_ns();
	for (unsigned long turn = 0; turn < count; turn++) {
		uint64_t length = length_of(turn, shortest, octaves);

		do
			end = now_ns();
		while (end - start < length);
		turns[turn] = end - start;
		sleep_ns(sleep);
		start = now_ns();
		sleeps[turn] = start - end;
	}
	for (unsigned long turn = 0; turn < count; turn++)
		printf("turn %lu\nsleep %lu\n", turns[turn], sleeps[turn]);
	tell("done");

	await_test();
	return 0;
}
