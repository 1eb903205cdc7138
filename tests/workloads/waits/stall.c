// SPDX-License-Identifier: MIT
/*
 * Threads that wait for work for 100 ms at a time, and one long wait of a thread with
 * work.
 *
 *     stall lock|cpu
 *
 * The first line from the test starts the idle waits, the second line the long wait.
 * `lock` is a wait for a mutex whose holder sleeps for 80 ms. `cpu` is a wait for a CPU
 * that a real-time thread has for 80 ms. Prints `wait TID END`, with the end of the wait
 * in ns of CLOCK_MONOTONIC.
 */
#define _GNU_SOURCE
#include "workload.h"

#include <sched.h>
#include <sys/eventfd.h>

#define IDLE_NS (100 * NS_PER_MS)
#define STALL_NS (80 * NS_PER_MS)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int work = -1;
static _Atomic int holds;

NOINLINE static void *serve(void *argument)
{
	uint64_t count;

	(void)argument;
	for (;;)
		check(raw_syscall4(SYS_read, work, (long)&count, 8, 0) != 8,
		      "read the work");
	return NULL;
}

static void *give_work(void *argument)
{
	const uint64_t one = 1;

	(void)argument;
	for (;;) {
		sleep_ns(IDLE_NS);
		raw_syscall4(SYS_write, work, (long)&one, 8, 0);
	}
	return NULL;
}

static void *hold(void *argument)
{
	(void)argument;
	pthread_mutex_lock(&mutex);
	atomic_store(&holds, 1);
	sleep_ns(STALL_NS);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void be_on_first_cpu(void)
{
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	check(sched_setaffinity(0, sizeof(first), &first), "choose a CPU");
}

static void *take_cpu(void *argument)
{
	struct sched_param priority = { .sched_priority = 10 };
	uint64_t end;

	(void)argument;
	be_on_first_cpu();
	check(sched_setscheduler(0, SCHED_FIFO, &priority),
	      "be a real-time thread");
	end = now_ns() + STALL_NS;
	while (now_ns() < end)
		;
	return NULL;
}

static void wait_for_lock(void)
{
	while (!atomic_load(&holds))
		sched_yield();
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";

	work = eventfd(0, 0);
	check(work < 0, "eventfd");
	tell("ready");
	await_test();
	start_thread_of(serve, NULL);
	start_thread_of(give_work, NULL);
	await_test();
	if (!strcmp(kind, "cpu")) {
		uint64_t now, last = now_ns(), end = last + 2 * STALL_NS;

		be_on_first_cpu();
		start_thread_of(take_cpu, NULL);
		/* The real-time thread takes the CPU in this loop. */
		while ((now = now_ns()) < end && now - last < STALL_NS / 2)
			last = now;
	} else {
		start_thread_of(hold, NULL);
		wait_for_lock();
	}
	tell("wait %ld %lu", raw_syscall4(SYS_gettid, 0, 0, 0, 0), now_ns());
	await_test();
	return 0;
}
