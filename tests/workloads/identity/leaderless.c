// SPDX-License-Identifier: MIT
/*
 * Process whose last thread is not its leader.
 *
 * usage: leaderless
 */
#include "workload.h"

static void *follower(void *unused)
{
	(void)unused;
	name_thread("follower");
	sleep_ns(50 * NS_PER_MS);
	_exit(0);
}

int main(void)
{
	tell("ready");
	await_test();
	start_thread_of(follower, NULL);
	pthread_exit(NULL);
}
