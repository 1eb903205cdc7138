// SPDX-License-Identifier: MIT
/*
 * Thread that waits for 5 to 900 us at a time, in functions of their own. In sleep_* it
 * sleeps. In pushed_* it waits for its CPU, because it wakes another thread that takes the
 * CPU. The waits have the same order in each round.
 *
 * usage: short_waits [SECONDS]
 * The program prints the time for which the thread was off its CPU in each function, in ns:
 * the time that passed less its CPU time. It also prints the number of rounds, and the time in
 * ns by which each measurement is too short.
 */
#define _GNU_SOURCE
#include "workload.h"

#include <sched.h>

static _Atomic uint32_t gate, finished, never, at_gate;
static _Atomic uint32_t order;
static _Atomic uint64_t span;
static uint64_t seconds;
static int tid;

/* Makes the pusher, which has a higher priority, take this thread's CPU for @ns. */
ALWAYS_INLINE void be_pushed(uint64_t ns)
{
	atomic_store(&span, ns);
	atomic_fetch_add(&order, 1);
	futex_wake(&order, 1);
}

#define FUNCTION(name, wait)                                                   \
	NOINLINE void name(void)                                               \
	{                                                                      \
		wait;                                                          \
	}

FUNCTION(sleep_20, sleep_ns(20 * NS_PER_US))
FUNCTION(sleep_100, sleep_ns(100 * NS_PER_US))
FUNCTION(sleep_300, sleep_ns(300 * NS_PER_US))
FUNCTION(sleep_900, sleep_ns(900 * NS_PER_US))
FUNCTION(pushed_5, be_pushed(5 * NS_PER_US))
FUNCTION(pushed_50, be_pushed(50 * NS_PER_US))
FUNCTION(pushed_300, be_pushed(300 * NS_PER_US))
FUNCTION(pushed_900, be_pushed(900 * NS_PER_US))

static struct {
	const char *name;
	void (*wait)(void);
	int64_t off_cpu;
} waits[] = {
	{ "sleep_20", sleep_20, 0 },	 { "sleep_100", sleep_100, 0 },
	{ "sleep_300", sleep_300, 0 },	 { "sleep_900", sleep_900, 0 },
	{ "pushed_5", pushed_5, 0 },	 { "pushed_50", pushed_50, 0 },
	{ "pushed_300", pushed_300, 0 }, { "pushed_900", pushed_900, 0 },
};

#define COUNT (sizeof(waits) / sizeof(*waits))

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

NOINLINE void nothing(void)
{
	asm volatile("" ::: "memory");
}

/* Returns the ns for which this thread was off the CPU in @wait. */
NOINLINE int64_t off_cpu_in(void (*wait)(void))
{
	uint64_t cpu = cpu_ns(), time = now_ns();

	wait();
	time = now_ns() - time;
	return (int64_t)(time - (cpu_ns() - cpu));
}

static void pin(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	check(sched_setaffinity(0, sizeof(one), &one), "pin");
}

NOINLINE void *push(void *argument)
{
	const struct sched_param first = { .sched_priority = 1 };
	uint32_t done = 0;
	uint64_t end;

	(void)argument;
	name_thread("pusher");
	check(sched_setscheduler(0, SCHED_FIFO, &first), "SCHED_FIFO");
	atomic_fetch_add(&at_gate, 1);
	for (;;) {
		wait_while(&order, done);
		end = now_ns() + atomic_load(&span);
		while (now_ns() < end)
			;
		done++;
	}
	return NULL;
}

NOINLINE void *work(void *argument)
{
	uint64_t end, rounds = 0;
	int64_t missing = 0;

	(void)argument;
	name_thread("waiter");
	/* The kernel may add up to 50 us of slack to each sleep. Remove the slack. */
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	pin();
	/* The new thread inherits this thread's CPU. */
	start_thread_of(push, NULL);
	tid = syscall(SYS_gettid);
	atomic_fetch_add(&at_gate, 1);
	wait_while(&gate, 0);

	end = now_ns() + seconds * NS_PER_S;
	for (; now_ns() < end; rounds++) {
		for (unsigned int n = 0; n < COUNT; n++)
			waits[n].off_cpu += off_cpu_in(waits[n].wait);
		missing -= off_cpu_in(nothing);
	}
	for (unsigned int n = 0; n < COUNT; n++)
		tell("%s %lu", waits[n].name,
		     waits[n].off_cpu > 0 ? waits[n].off_cpu : 0);
	tell("waiter %d rounds %lu missing %lu", tid, rounds,
	     missing > 0 ? missing / rounds : 0);
	set_and_wake(&finished, 1);
	wait_while(&never, 0);
	return NULL;
}

int main(int argc, char **argv)
{
	seconds = argument_or(argc, argv, 1, 3);
	start_thread_of(work, NULL);
	while (atomic_load(&at_gate) < 2)
		sleep_ns(NS_PER_MS);
	tell("ready");

	await_test();
	set_and_wake(&gate, 1);
	wait_while(&finished, 0);
	tell("done");

	await_test();
	return 0;
}
