// SPDX-License-Identifier: MIT
/*
 * Threads that start and end while a window is open, beside a thread that sleeps through all
 * of it.
 *
 * After the test sends a line, "born" starts and sleeps to the end, "ending" (alive from the
 * start) ends, and "brief" starts and ends. The program prints the times at which each thread
 * started and ended. It reads each time twice: just outside pthread_create or pthread_join,
 * and just inside the thread.
 */
#include "workload.h"

static _Atomic uint32_t leave;
static _Atomic uint32_t never;
static _Atomic uint32_t up;

NOINLINE void lasting_sleep(void)
{
	sleep_ns(1000 * NS_PER_S);
}

NOINLINE void *lasting(void *unused)
{
	(void)unused;
	name_thread("lasting");
	tell("lasting %ld", syscall(SYS_gettid));
	atomic_fetch_add(&up, 1);
	lasting_sleep();
	return NULL;
}

NOINLINE void wait_to_leave(void)
{
	wait_while(&leave, 0);
}

NOINLINE void *ending(void *unused)
{
	(void)unused;
	name_thread("ending");
	tell("ending %ld", syscall(SYS_gettid));
	atomic_fetch_add(&up, 1);
	wait_to_leave();
	tell("ending-end %lu", now_ns());
	return NULL;
}

NOINLINE void born_wait(void)
{
	wait_while(&never, 0);
}

NOINLINE void *born(void *unused)
{
	uint64_t up = now_ns();

	(void)unused;
	name_thread("born");
	tell("born %ld born-up %lu", syscall(SYS_gettid), up);
	born_wait();
	return NULL;
}

NOINLINE void brief_sleep(void)
{
	sleep_ns(200 * NS_PER_MS);
}

NOINLINE void *brief(void *unused)
{
	uint64_t up = now_ns(), slept;

	(void)unused;
	name_thread("brief");
	tell("brief %ld brief-up %lu", syscall(SYS_gettid), up);
	slept = now_ns();
	brief_sleep();
	slept = now_ns() - slept;
	tell("brief-slept %lu brief-end %lu", slept, now_ns());
	return NULL;
}

int main(void)
{
	pthread_t ending_thread, brief_thread;

	start_thread_of(lasting, NULL);
	ending_thread = start_thread_of(ending, NULL);
	while (atomic_load(&up) < 2)
		sleep_ns(NS_PER_MS);
	sleep_ns(20 * NS_PER_MS);
	tell("ready");

	await_test();
	sleep_ns(300 * NS_PER_MS);
	tell("born-start %lu", now_ns());
	start_thread_of(born, NULL);
	sleep_ns(300 * NS_PER_MS);
	set_and_wake(&leave, 1);
	pthread_join(ending_thread, NULL);
	tell("ending-gone %lu", now_ns());
	tell("brief-start %lu", now_ns());
	brief_thread = start_thread_of(brief, NULL);
	pthread_join(brief_thread, NULL);
	tell("brief-gone %lu", now_ns());
	sleep_ns(300 * NS_PER_MS);
	tell("done");

	await_test();
	return 0;
}
