// SPDX-License-Identifier: MIT
/*
 * Functions with uretprobes, as bpftrace and perf set them. One thread computes and sleeps in
 * such functions in turn. Another thread sleeps in such a function from the beginning.
 */
#include "workload.h"
#include <linux/perf_event.h>

#define UPROBE_TYPE "/sys/bus/event_source/devices/uprobe/type"
/* Bit of an event's configuration that makes it a uretprobe. */
#define URETPROBE_CONFIG 1

NOINLINE static void probed_spin(void)
{
	for (volatile unsigned int turn = 0; turn < 2 * 1000 * 1000; turn++)
		;
}

NOINLINE static void probed_sleep(uint64_t ns)
{
	sleep_ns(ns);
	asm volatile("" ::: "memory");
}

/* Returns the offset of @function in the file of this program. */
static uint64_t file_offset(uintptr_t function)
{
	uintptr_t start = 0, end = 0;
	unsigned long offset = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];

	check(!maps, "/proc/self/maps");
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) ==
			    3 &&
		    start <= function && function < end)
			break;
	}
	fclose(maps);
	return offset + function - start;
}

static void probe_return(uintptr_t function)
{
	struct perf_event_attr event = {
		.size = sizeof(event),
		.config = URETPROBE_CONFIG,
		.uprobe_path = (uintptr_t) "/proc/self/exe",
		.probe_offset = file_offset(function),
	};
	FILE *type = fopen(UPROBE_TYPE, "r");

	check(!type || fscanf(type, "%u", &event.type) != 1, UPROBE_TYPE);
	fclose(type);
	check(syscall(SYS_perf_event_open, &event, 0, -1, -1, 0) < 0,
	      "perf_event_open");
}

NOINLINE static void *sleep_long(void *name)
{
	name_thread(name);
	tell("asleep");
	probed_sleep(100 * NS_PER_S);
	return NULL;
}

NOINLINE static void *take_turns(void *name)
{
	name_thread(name);
	for (;;) {
		probed_spin();
		probed_sleep(10 * NS_PER_MS);
		asm volatile("" ::: "memory");
	}
}

int main(void)
{
	probe_return((uintptr_t)probed_spin);
	probe_return((uintptr_t)probed_sleep);
	start_thread_of(sleep_long, "sleeper");
	start_thread_of(take_turns, "turns");
	sleep_ns(100 * NS_PER_MS);
	tell("ready");
	leave_with_test(NULL);
}
