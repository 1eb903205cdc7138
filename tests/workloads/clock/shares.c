// SPDX-License-Identifier: MIT
/*
 * Program that computes in f, g and h in turn, 5 ms in all in parts of 6, 3 and 1, and
 * measures the CPU time of each function. With TICK_US each round begins at a multiple of that
 * time, as in programs that a timer drives. A sampler in step with the timer always hits the
 * same function.
 *
 * usage: shares SECONDS [TICK_US]
 * The program prints the CPU time in each function in ns.
 */
#include "workload.h"

static uint64_t turns_a_part;
static uint64_t spent[3];

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

NOINLINE void f(uint64_t turns)
{
	for (volatile uint64_t turn = 0; turn < turns; turn++)
		;
}

NOINLINE void g(uint64_t turns)
{
	for (volatile uint64_t turn = 0; turn < turns; turn++)
		;
}

NOINLINE void h(uint64_t turns)
{
	for (volatile uint64_t turn = 0; turn < turns; turn++)
		;
}

NOINLINE void one_round(void)
{
	uint64_t times[4];

	times[0] = cpu_ns();
	f(6 * turns_a_part);
	times[1] = cpu_ns();
	g(3 * turns_a_part);
	times[2] = cpu_ns();
	h(1 * turns_a_part);
	times[3] = cpu_ns();
	for (int n = 0; n < 3; n++)
		spent[n] += times[n + 1] - times[n];
}

static void sleep_until(uint64_t ns)
{
	struct timespec end = {
		.tv_sec = (time_t)(ns / NS_PER_S),
		.tv_nsec = (long)(ns % NS_PER_S),
	};

	raw_syscall4(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME,
		     (long)&end, 0);
}

/* Returns the number of turns that take half a millisecond on this machine. */
static uint64_t calibrate(void)
{
	const uint64_t turns = 10 * 1000 * 1000;
	uint64_t start = cpu_ns();

	f(turns);
	return turns * NS_PER_MS / 2 / (cpu_ns() - start);
}

int main(int argc, char **argv)
{
	uint64_t seconds = argument_or(argc, argv, 1, 3);
	uint64_t tick_ns = argument_or(argc, argv, 2, 0) * NS_PER_US;
	uint64_t end;

	turns_a_part = calibrate();
	tell("ready");

	await_test();
	end = now_ns() + seconds * NS_PER_S;
	while (now_ns() < end) {
		if (tick_ns)
			sleep_until((now_ns() / tick_ns + 1) * tick_ns);
		one_round();
	}
	tell("f %lu g %lu h %lu", spent[0], spent[1], spent[2]);
	tell("done");

	await_test();
	return 0;
}
