// SPDX-License-Identifier: MIT
/*
 * Waits whose wake-up comes just as the sleeper goes to sleep. The wake-up comes from another
 * CPU, a little later each time. The sleeper shares its CPU with a thread that computes, and
 * does not preempt this thread. After the sleeper has left its CPU, it waits for a whole time
 * slice.
 *
 * usage: early MILLISECONDS
 * The program prints the sleeper's thread ID, the number of dozes, the number of wake-ups by
 * the kernel's account, and how often the sleeper left its CPU to sleep. The difference of the
 * last two is the number of waits that never happened.
 * It also prints a bound on the blocked time in ns: the sum of the times from before the
 * sleeper asks for a doze until after the waker ends it. The last figure is the longest time
 * from one doze to the next.
 */
#define _GNU_SOURCE
#include <sched.h>

#include <sys/resource.h>

#include "workload.h"

#define STEPS 64
#define STEP_NS 100

static _Atomic uint32_t asleep;
static _Atomic uint64_t begun;
static _Atomic uint64_t ended;
static _Atomic int stop;
static uint64_t asked_ns;
static uint64_t slept;

static void pin_to(int last)
{
	cpu_set_t allowed, one;
	int cpu = last ? CPU_SETSIZE - 1 : 0;

	check(sched_getaffinity(0, sizeof(allowed), &allowed), "affinity");
	while (!CPU_ISSET(cpu, &allowed))
		cpu += last ? -1 : 1;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	check(sched_setaffinity(0, sizeof(one), &one), "pin");
}

NOINLINE void doze(void)
{
	wait_while(&asleep, 1);
}

static void *sleeper(void *unused)
{
	struct sched_param none = {};
	struct rusage usage;
	long before;

	(void)unused;
	tell("sleeper %ld", syscall(SYS_gettid));
	pin_to(0);
	check(sched_setscheduler(0, SCHED_BATCH, &none), "SCHED_BATCH");
	getrusage(RUSAGE_THREAD, &usage);
	before = usage.ru_nvcsw;
	for (uint64_t round = 1; !atomic_load(&stop); round++) {
		atomic_store(&asleep, 1);
		asked_ns = now_ns();
		atomic_store(&begun, round);
		doze();
		while (atomic_load(&ended) != round && !atomic_load(&stop))
			;
	}
	getrusage(RUSAGE_THREAD, &usage);
	slept = usage.ru_nvcsw - before;
	return NULL;
}

static void *competitor(void *unused)
{
	(void)unused;
	pin_to(0);
	while (!atomic_load(&stop))
		;
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t ms = argument_or(argc, argv, 1, 1000);
	uint64_t blocked_at_most = 0, longest = 0, round = 0, last, end, from;
	uint64_t woken = 0;
	pthread_t threads[2];

	tell("ready");
	await_test();

	threads[0] = start_thread_of(competitor, NULL);
	threads[1] = start_thread_of(sleeper, NULL);
	pin_to(1);
	/* A waker that is late tests less. */
	setpriority(PRIO_PROCESS, 0, -20);
	last = now_ns();
	end = last + ms * NS_PER_MS;
	/* A sleeper that sees the end begins no new round. */
	while (!atomic_load(&stop)) {
		round++;
		while (atomic_load(&begun) != round)
			;
		from = now_ns();
		if (from - last > longest)
			longest = from - last;
		last = from;
		while (now_ns() - from < round % STEPS * STEP_NS)
			;
		woken += set_and_wake(&asleep, 0);
		blocked_at_most += now_ns() - asked_ns;
		if (now_ns() >= end)
			atomic_store(&stop, 1);
		atomic_store(&ended, round);
	}
	for (int thread = 0; thread < 2; thread++)
		pthread_join(threads[thread], NULL);
	tell("dozes %lu woken %lu slept %lu", round, woken, slept);
	tell("blocked_at_most %lu longest %lu", blocked_at_most, longest);
	tell("done");

	await_test();
	return 0;
}
