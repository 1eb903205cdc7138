// SPDX-License-Identifier: MIT
/*
 * Two processes that pass a byte back and forth over pipes as fast as they can, both on one
 * CPU. Every 50 ms the program prints the clock and the number of passes so far.
 *
 * usage: ping_pong [CPU]
 */
#define _GNU_SOURCE
#include "workload.h"

#include <sched.h>
#include <signal.h>

static void pass(int from, int to)
{
	char byte;

	if (read(from, &byte, 1) != 1 || write(to, &byte, 1) != 1)
		_exit(0);
}

int main(int argc, char **argv)
{
	int there[2], back[2];
	uint64_t passes = 0, said;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(argument_or(argc, argv, 1, 0), &cpus);
	check(sched_setaffinity(0, sizeof(cpus), &cpus), "sched_setaffinity");
	check(pipe(there) || pipe(back), "pipe");

	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pass(there[0], back[1]);
	}
	check(write(back[1], "", 1) != 1, "write");
	tell("ready");
	said = now_ns();
	for (;;) {
		for (int n = 0; n < 64; n++)
			pass(back[0], there[1]);
		passes += 64;
		if (now_ns() - said >= 50 * NS_PER_MS) {
			said = now_ns();
			tell("%lu %lu", said, passes);
		}
	}
}
