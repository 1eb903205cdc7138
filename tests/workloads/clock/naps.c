// SPDX-License-Identifier: MIT
/*
 * Many short sleeps and a few long ones, in functions of their own.
 *
 * usage: naps SECONDS [NAP_US [REST_MS]]
 * The program sleeps for NAP_US in nap over and over. About five times a second it sleeps for
 * REST_MS in rest; 0 means never. It prints the total time of its naps in ns, and the time of
 * the naps that took at least 900 us.
 */
#include "workload.h"

NOINLINE void nap(uint64_t ns)
{
	sleep_ns(ns);
}

NOINLINE void rest(uint64_t ns)
{
	sleep_ns(ns);
}

int main(int argc, char **argv)
{
	uint64_t seconds = argument_or(argc, argv, 1, 2);
	uint64_t nap_ns = argument_or(argc, argv, 2, 200) * NS_PER_US;
	uint64_t rest_ns = argument_or(argc, argv, 3, 0) * NS_PER_MS;
	uint64_t naps = 0, long_naps = 0, count = 0, rests = 0;
	uint64_t start, last_rest, before, took;

	/* The kernel may add up to 50 us of slack to each sleep. Remove the slack. */
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	tell("ready");

	await_test();
	start = last_rest = before = now_ns();
	while (before - start < seconds * NS_PER_S) {
		nap(nap_ns);
		took = now_ns() - before;
		naps += took;
		count++;
		if (took >= 900 * NS_PER_US)
			long_naps += took;
		if (rest_ns && now_ns() - last_rest > 200 * NS_PER_MS) {
			last_rest = now_ns();
			rest(rest_ns);
			rests += now_ns() - last_rest;
		}
		before = now_ns();
	}
	tell("naps %lu long_naps %lu count %lu rests %lu", naps, long_naps,
	     count, rests);
	tell("done");

	await_test();
	return 0;
}
