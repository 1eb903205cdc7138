// SPDX-License-Identifier: MIT
/*
 * Real-time thread that holds a CPU. Meanwhile other threads that want this CPU are created
 * and woken there.
 *
 * usage: held ROUNDS [HOLD_MS]
 * The program prints the time for which newborn threads and a sleeper had to wait for the CPU,
 * and the time for which the sleeper could sleep, in ns. All times are 0 if the machine grants
 * no real-time priority.
 */
#define _GNU_SOURCE
#include <sched.h>

#include "workload.h"

#define PEACE_NS (9 * NS_PER_MS)

static _Atomic uint32_t asleep = 1;
static _Atomic uint64_t asked_ns;

/* Keeps the CPU for about @ns, and returns the exact time in ns. */
NOINLINE uint64_t hold(uint64_t ns)
{
	uint64_t from = now_ns(), now = from;

	while (now - from < ns)
		now = now_ns();
	return now - from;
}

NOINLINE void doze(void)
{
	futex_wait(&asleep, 1);
}

static void *newborn(void *unused)
{
	return unused;
}

static void *sleeper(void *unused)
{
	(void)unused;
	tell("sleeper %ld", syscall(SYS_gettid));
	for (;;) {
		atomic_store(&asked_ns, now_ns());
		doze();
		atomic_store(&asked_ns, 0);
	}
	return NULL;
}

static int go_before_all_others(void)
{
	struct sched_param first = { .sched_priority = 1 };
	cpu_set_t allowed, one;
	int cpu = 0;

	check(sched_getaffinity(0, sizeof(allowed), &allowed), "affinity");
	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	check(sched_setaffinity(0, sizeof(one), &one), "pin");
	/* Threads that this thread starts have no real-time priority. */
	return !sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argument_or(argc, argv, 1, 20);
	uint64_t hold_ns = argument_or(argc, argv, 2, 3) * NS_PER_MS;
	uint64_t born = 0, held = 0, peace = 0, begun, asked;
	pthread_t child;
	int first;

	first = go_before_all_others();
	start_thread_of(sleeper, NULL);
	sleep_ns(PEACE_NS);
	tell("ready");

	await_test();
	begun = now_ns();
	for (unsigned long round = 0; round < rounds; round++) {
		child = start_thread_of(newborn, NULL);
		born += hold(hold_ns);
		pthread_join(child, NULL);
		sleep_ns(PEACE_NS);
		asked = atomic_load(&asked_ns);
		if (asked)
			peace += now_ns() - (asked > begun ? asked : begun);
		futex_wake(&asleep, 1);
		held += hold(hold_ns);
	}
	/* Without the priority the other threads do not have to wait for the CPU. */
	tell("born %lu held %lu peace %lu", first ? born : 0, first ? held : 0,
	     first ? peace : 0);
	tell("done");

	await_test();
	return 0;
}
