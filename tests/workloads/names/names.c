// SPDX-License-Identifier: MIT
/* Threads whose names could break formats. Each thread computes and sleeps in turn. */
#include "workload.h"

static const char *const names[] = {
	"kworker/u:1",
	"a;b c",
	"two\nlines",
	"\xff\xfe\x80 bytes",
	"",
	"../../up",
	".",
	"..",
	"tab\there",
	"1 2 3",
	"a-1/2;x 9",
	"[brackets]",
	"bell\a\x1b[31m",
	"<&\"'>",
	"\xd0\x96\xd1\x83\xd0\xba",
};

#define COUNT (sizeof(names) / sizeof(names[0]))

static _Atomic uint32_t up;

NOINLINE void burn(void)
{
	for (volatile unsigned int turn = 0; turn < 400 * 1000; turn++)
		;
}

NOINLINE void pause_a_little(void)
{
	sleep_ns(20 * NS_PER_MS);
}

NOINLINE void *named(void *name)
{
	name_thread(name);
	/* With slack, all threads would sleep and wake together. */
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	atomic_fetch_add(&up, 1);
	for (;;) {
		burn();
		pause_a_little();
	}
	return NULL;
}

int main(void)
{
	for (unsigned long n = 0; n < COUNT; n++)
		start_thread_of(named, (void *)names[n]);
	while (atomic_load(&up) < COUNT)
		sleep_ns(NS_PER_MS);
	tell("ready");

	await_test();
	return 0;
}
