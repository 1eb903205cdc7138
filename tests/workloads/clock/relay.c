// SPDX-License-Identifier: MIT
/*
 * Four real-time threads pass a baton in turn, each waiting for it in another way. The
 * thread with the baton computes, naps, computes again and passes the baton on. Each
 * thread notes when its phases begin and end, and prints that at the end.
 *
 *     relay ROUNDS
 *
 * Prints for each wait `wait INDEX TID FUNCTION BEGIN END WAKER`, and for each run
 * `run INDEX TID BEGIN END`, with times in ns of CLOCK_MONOTONIC. A nap has waker 0, and
 * ends when its thread is back.
 */
#include "workload.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define THREADS 4
#define LONG_NS (2 * NS_PER_MS)
#define NAP_NS (1 * NS_PER_MS)
#define SHORT_NS (500 * NS_PER_US)

static unsigned long rounds;
static _Atomic uint32_t word;
static int pipe_ends[2], socket_ends[2], event;
static int tids[THREADS];
/* Time at which the baton was passed to each thread in each round. */
static uint64_t *passed[THREADS];

enum note { WAIT_BEGIN, RUN_BEGIN, NAP_BEGIN, NAP_END, RUN_END, NOTES };
static uint64_t (*notes[THREADS])[NOTES];

static void spin(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	while (now_ns() < end)
		;
}

NOINLINE static void wait_for_pipe(void)
{
	char byte;

	check(raw_syscall4(SYS_read, pipe_ends[0], (long)&byte, 1, 0) != 1,
	      "read the pipe");
	asm volatile("" ::: "memory");
}

NOINLINE static void wait_for_word(uint32_t value)
{
	while (atomic_load(&word) < value)
		futex_wait(&word, value - 1);
	asm volatile("" ::: "memory");
}

NOINLINE static void wait_for_event(void)
{
	uint64_t count;

	check(raw_syscall4(SYS_read, event, (long)&count, 8, 0) != 8,
	      "read the event");
	asm volatile("" ::: "memory");
}

NOINLINE static void wait_for_socket(void)
{
	char byte;

	check(raw_syscall4(SYS_read, socket_ends[0], (long)&byte, 1, 0) != 1,
	      "read the socket");
	asm volatile("" ::: "memory");
}

NOINLINE static void nap(void)
{
	sleep_ns(NAP_NS);
	asm volatile("" ::: "memory");
}

static void pass_to(int next, unsigned long round)
{
	const uint64_t one = 1;

	passed[next][round] = now_ns();
	switch (next) {
	case 0:
		raw_syscall4(SYS_write, pipe_ends[1], (long)&one, 1, 0);
		break;
	case 1:
		set_and_wake(&word, round + 1);
		break;
	case 2:
		raw_syscall4(SYS_write, event, (long)&one, 8, 0);
		break;
	default:
		raw_syscall4(SYS_write, socket_ends[1], (long)&one, 1, 0);
	}
}

static void *take_turns(void *argument)
{
	long me = (long)argument;
	struct sched_param first = { .sched_priority = 10 };

	tids[me] = raw_syscall4(SYS_gettid, 0, 0, 0, 0);
	check(sched_setscheduler(0, SCHED_FIFO, &first),
	      "be a real-time thread");
	for (unsigned long i = 0; i < rounds; i++) {
		uint64_t *note = notes[me][i];

		note[WAIT_BEGIN] = now_ns();
		if (me == 0)
			wait_for_pipe();
		else if (me == 1)
			wait_for_word(i + 1);
		else if (me == 2)
			wait_for_event();
		else
			wait_for_socket();
		note[RUN_BEGIN] = now_ns();
		spin(LONG_NS);
		note[NAP_BEGIN] = now_ns();
		nap();
		note[NAP_END] = now_ns();
		spin(SHORT_NS);
		note[RUN_END] = now_ns();
		if (me < THREADS - 1)
			pass_to(me + 1, i);
		else if (i + 1 < rounds)
			pass_to(0, i + 1);
	}
	return NULL;
}

static void print_thread(int me)
{
	static const char *const functions[THREADS] = { "wait_for_pipe",
							"wait_for_word",
							"wait_for_event",
							"wait_for_socket" };
	int waker = tids[(me + THREADS - 1) % THREADS];

	for (unsigned long i = 0; i < rounds; i++) {
		uint64_t *note = notes[me][i];

		/* The main thread passes the baton first. */
		tell("wait %lu %d %s %lu %lu %d", i, tids[me], functions[me],
		     note[WAIT_BEGIN], passed[me][i],
		     me == 0 && i == 0 ? getpid() : waker);
		tell("run %lu %d %lu %lu", i, tids[me], note[RUN_BEGIN],
		     note[NAP_BEGIN]);
		tell("wait %lu %d nap %lu %lu 0", i, tids[me], note[NAP_BEGIN],
		     note[NAP_END]);
		tell("run %lu %d %lu %lu", i, tids[me], note[NAP_END],
		     note[RUN_END]);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	rounds = argument_or(argc, argv, 1, 50);
	check(pipe(pipe_ends), "pipe");
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, socket_ends), "socketpair");
	event = eventfd(0, 0);
	check(event < 0, "eventfd");
	for (long i = 0; i < THREADS; i++) {
		passed[i] = calloc(rounds, sizeof(*passed[i]));
		notes[i] = calloc(rounds, sizeof(*notes[i]));
		check(!passed[i] || !notes[i], "calloc");
		/* The kernel maps the pages now, not in the middle of a phase. */
		memset(passed[i], 1, rounds * sizeof(*passed[i]));
		memset(notes[i], 1, rounds * sizeof(*notes[i]));
	}
	tell("ready");
	await_test();
	for (long i = 0; i < THREADS; i++)
		threads[i] = start_thread_of(take_turns, (void *)i);
	sleep_ns(50 * NS_PER_MS);
	pass_to(0, 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++)
		print_thread(i);
	tell("done");
	await_test();
	return 0;
}
