// SPDX-License-Identifier: MIT
/*
 * Threads that compute in f, sleep in g, wait for a lock in h and read a pipe in i, round
 * after round. All threads are blocked before "ready" and after "done". If a window opens and
 * closes in these times, it must show exactly what the kernel accounts in between.
 *
 * usage: phases [SECONDS [THREADS]]
 * The program prints the time of each worker in each function, by the worker's own measure, in
 * ns.
 */
#include "workload.h"

enum { F, G, H, I, PHASES };
enum { FREE, HELD };

#define MAX_WORKERS 64

struct worker {
	pthread_t thread;
	unsigned int number;
	_Atomic uint32_t lock;
	int pipe[2];
	uint64_t spent[PHASES];
	int tid;
};

static struct worker workers[MAX_WORKERS];
static unsigned int worker_count;
static uint64_t seconds;
static uint64_t burn_turns;
static _Atomic uint32_t gate;
static _Atomic uint32_t at_gate;
static _Atomic uint32_t finished;
static _Atomic uint32_t never;

NOINLINE void f(uint64_t turns)
{
	for (volatile uint64_t turn = 0; turn < turns; turn++)
		;
}

NOINLINE void g(uint64_t ns)
{
	sleep_ns(ns);
}

NOINLINE void h(_Atomic uint32_t *lock)
{
	uint32_t expected = FREE;

	while (!atomic_compare_exchange_strong(lock, &expected, HELD)) {
		futex_wait(lock, HELD);
		expected = FREE;
	}
}

NOINLINE void i(int fd)
{
	char byte;

	raw_syscall4(SYS_read, fd, (long)&byte, 1, 0);
}

NOINLINE void one_round(struct worker *worker)
{
	uint64_t times[PHASES + 1];

	times[F] = now_ns();
	f(burn_turns);
	times[G] = now_ns();
	g(20 * NS_PER_MS);
	times[H] = now_ns();
	h(&worker->lock);
	times[I] = now_ns();
	i(worker->pipe[0]);
	times[PHASES] = now_ns();

	for (int phase = 0; phase < PHASES; phase++)
		worker->spent[phase] += times[phase + 1] - times[phase];
}

NOINLINE void *work(void *argument)
{
	struct worker *worker = argument;
	char name[16];
	uint64_t end;

	snprintf(name, sizeof(name), "worker-%u", worker->number);
	name_thread(name);
	worker->tid = syscall(SYS_gettid);
	atomic_fetch_add(&at_gate, 1);
	wait_while(&gate, 0);

	end = now_ns() + seconds * NS_PER_S;
	while (now_ns() < end)
		one_round(worker);

	atomic_fetch_add(&finished, 1);
	wait_while(&never, 0);
	return NULL;
}

/* Gives each worker its lock and its byte in turn, until all workers have finished. */
NOINLINE void *drive(void *argument)
{
	(void)argument;
	name_thread("driver");
	atomic_fetch_add(&at_gate, 1);
	wait_while(&gate, 0);

	while (atomic_load(&finished) < worker_count) {
		sleep_ns(110 * NS_PER_MS);
		for (unsigned int n = 0; n < worker_count; n++)
			set_and_wake(&workers[n].lock, FREE);
		sleep_ns(60 * NS_PER_MS);
		for (unsigned int n = 0; n < worker_count; n++)
			check(write(workers[n].pipe[1], "", 1) != 1, "write");
	}
	futex_wake(&finished, 1);
	wait_while(&never, 0);
	return NULL;
}

/* Returns the number of turns of f that take about 20 ms on this machine. */
static uint64_t calibrate(void)
{
	const uint64_t turns = 10 * 1000 * 1000;
	uint64_t start = now_ns();

	f(turns);
	return turns * 20 * NS_PER_MS / (now_ns() - start);
}

int main(int argc, char **argv)
{
	uint32_t through;

	seconds = argument_or(argc, argv, 1, 3);
	worker_count = argument_or(argc, argv, 2, 3);
	check(worker_count > MAX_WORKERS, "too many workers");
	burn_turns = calibrate();

	for (unsigned int n = 0; n < worker_count; n++) {
		workers[n].number = n;
		workers[n].lock = HELD;
		check(pipe(workers[n].pipe), "pipe");
		workers[n].thread = start_thread_of(work, &workers[n]);
	}
	start_thread_of(drive, NULL);
	while (atomic_load(&at_gate) < worker_count + 1)
		sleep_ns(NS_PER_MS);
	tell("ready");

	await_test();
	set_and_wake(&gate, 1);
	while ((through = atomic_load(&finished)) < worker_count)
		futex_wait(&finished, through);
	for (unsigned int n = 0; n < worker_count; n++)
		tell("worker-%u %d f-%u %lu g-%u %lu h-%u %lu i-%u %lu", n,
		     workers[n].tid, n, workers[n].spent[F], n,
		     workers[n].spent[G], n, workers[n].spent[H], n,
		     workers[n].spent[I]);
	tell("done");

	await_test();
	return 0;
}
