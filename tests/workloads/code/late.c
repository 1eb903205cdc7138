// SPDX-License-Identifier: MIT
/*
 * Program that opens a library when the test sends a line. From then on it spends its time in
 * functions that the library calls back.
 *
 * usage: late LIBRARY wait|hold|burn
 * The chain of main is main, plugin_outer, plugin_inner, and host_wait or host_burn. The chain
 * of the second thread has thread_root in place of main.
 *
 * A tool copies at most 16 stacks of a process until it has read the new mappings (dump_budget
 * in bpf/). The two threads need 240 ms for as many waits. In that time the tool gets a CPU,
 * whatever else runs.
 */
#include <dlfcn.h>

#include "workload.h"

typedef uint64_t (*outer_fn)(uint64_t (*call_back)(uint64_t),
			     unsigned int salt);

static uint64_t wait_ns = 30 * NS_PER_MS;
static uint64_t (*call_back)(uint64_t);
static volatile unsigned int salt;

NOINLINE uint64_t host_wait(uint64_t seed)
{
	struct timespec left = {
		.tv_sec = (time_t)(wait_ns / NS_PER_S),
		.tv_nsec = (long)(wait_ns % NS_PER_S),
	};

	return (uint64_t)nanosleep(&left, NULL) + seed;
}

NOINLINE uint64_t host_burn(uint64_t seed)
{
	for (volatile unsigned int turn = 0; turn < 500; turn++)
		;
	return seed + salt;
}

NOINLINE void *thread_root(void *argument)
{
	outer_fn outer = (outer_fn)argument;
	uint64_t sum = 0;

	name_thread("second");
	for (;;)
		sum += outer(call_back, salt);
	return (void *)sum;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[2] : "wait";
	volatile uint64_t sum = 0;
	void *library;
	outer_fn outer;

	check(argc < 2, "no library named");
	call_back = strcmp(mode, "burn") == 0 ? host_burn : host_wait;
	if (strcmp(mode, "hold") == 0)
		wait_ns = 1000 * NS_PER_S;
	tell("ready");

	await_test();
	library = dlopen(argv[1], RTLD_NOW);
	outer = library ? (outer_fn)dlsym(library, "plugin_outer") : NULL;
	if (!outer) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	start_thread_of(thread_root, (void *)outer);
	tell("done");
	for (;;)
		sum = sum + outer(call_back, salt);
}
