// SPDX-License-Identifier: MIT
/*
 * Workers that come and go. Each worker forks a child of its own.
 *
 * usage: family WORKERS AT_ONCE
 * A worker computes for 60 ms and sleeps for 30 ms, and its child does the same meanwhile.
 * Each process that waits for another process prints that process's ID, its own ID, and that
 * process's running time in ns by the kernel's account. This time includes the processes for
 * which that process has waited.
 */
#include <sys/resource.h>
#include <sys/wait.h>

#include "workload.h"

#define LIFE_NS (60 * NS_PER_MS)

static void live(void)
{
	struct timespec spent, nap = { .tv_nsec = 30 * NS_PER_MS };

	do {
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
	} while (spent.tv_sec == 0 && spent.tv_nsec < (long)LIFE_NS);
	nanosleep(&nap, NULL);
}

static uint64_t in_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_usec * 1000;
}

static void wait_for_one(void)
{
	struct rusage usage;
	pid_t pid = wait4(-1, NULL, 0, &usage);
	char line[128];
	int length;

	check(pid < 0, "wait4");
	/* The line must be a single write, because all workers write to the same file. */
	length = snprintf(line, sizeof(line), "%d %d %llu\n", pid, getpid(),
			  (unsigned long long)(in_ns(usage.ru_utime) +
					       in_ns(usage.ru_stime)));
	check(write(1, line, (size_t)length) != length, "write");
}

NOINLINE void worker(void)
{
	pid_t child = fork();

	check(child < 0, "fork");
	live();
	if (child)
		wait_for_one();
	_exit(0);
}

int main(int argc, char **argv)
{
	unsigned long workers, at_once, alive = 0;

	check(argc != 3, "usage: family WORKERS AT_ONCE");
	workers = strtoul(argv[1], NULL, 10);
	at_once = strtoul(argv[2], NULL, 10);
	while (workers || alive) {
		if (workers && alive < at_once) {
			pid_t pid = fork();

			check(pid < 0, "fork");
			if (!pid)
				worker();
			workers--;
			alive++;
		} else {
			wait_for_one();
			alive--;
		}
	}
	return 0;
}
