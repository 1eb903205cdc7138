// SPDX-License-Identifier: MIT
/*
 * One thread that computes in known_burn and sleeps for 4 to 6 ms in known_sleep.
 *
 * usage: simple [SECONDS] (counted from the test's line; the default 0 means until that line)
 */
#include "workload.h"

NOINLINE void known_burn(void)
{
	for (volatile unsigned int turn = 0; turn < 1000 * 1000; turn++)
		;
}

NOINLINE void known_sleep(void)
{
	/* The lengths of the sleeps differ, so that no sampler is in step with them. */
	static unsigned int turn;

	sleep_ns(4 * NS_PER_MS + turn++ * 617 % 2000 * NS_PER_US);
}

NOINLINE void known_work(void)
{
	known_burn();
	known_sleep();
}

int main(int argc, char **argv)
{
	uint64_t seconds = argument_or(argc, argv, 1, 0);
	uint64_t end = UINT64_MAX;

	if (!seconds)
		start_thread_of(leave_with_test, NULL);
	tell("ready");
	if (seconds) {
		await_test();
		end = now_ns() + seconds * NS_PER_S;
	}
	while (now_ns() < end)
		known_work();
	return 0;
}
