// SPDX-License-Identifier: MIT
/*
 * Many short sleeps at the bottom of a deep stack, or samples there.
 *
 * usage: deep FRAMES sleep|burn
 */
#include <string.h>
#include <sys/prctl.h>

#include "workload.h"

static const char *what;

static void stay(void)
{
	/*
	 * With a shorter time the timer could expire before the switch, and there would be no
	 * switch.
	 */
	struct timespec moment = { .tv_nsec = 20000 };

	if (!strcmp(what, "sleep"))
		nanosleep(&moment, NULL);
	for (volatile unsigned int turn = 0; turn < 1000; turn++)
		;
}

NOINLINE int descend(uint64_t frames)
{
	volatile char room[64];
	int value;

	room[0] = 1;
	if (!frames)
		for (;;)
			stay();
	value = descend(frames - 1);
	return value + room[0];
}

int main(int argc, char **argv)
{
	uint64_t frames = argument_or(argc, argv, 1, 35);

	what = argc > 2 ? argv[2] : "sleep";
	prctl(PR_SET_TIMERSLACK, 1);
	tell("ready");
	return descend(frames);
}
