/*
 * Runtime of a made-up language. Its interpreter keeps a list of frames for each thread. On each
 * entry, the interpreter puts a frame without a function on the C stack. Each thread of the program
 * runs functions that call C, and C calls the interpreter again.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define THREADS 4

struct function {
	char name[24];
};

struct frame {
	struct frame *caller;
	const struct function *function;
	uint32_t line;
};

/* Threads and their innermost frames, from which all other data are found. */
struct {
	uintptr_t self;
	struct frame *innermost;
} toy_runtime[THREADS];

static _Thread_local unsigned me;

static const struct function functions[] = { { "outer" },
					     { "middle" },
					     { "inner" } };

static NOINLINE void toy_interpret(unsigned first, unsigned last,
				   void (*then)(void))
{
	struct frame entry = { .caller = toy_runtime[me].innermost };
	/* The frames are not on the C stack. */
	static _Thread_local struct frame heap[3];

	toy_runtime[me].innermost = &entry;
	for (unsigned i = first; i <= last; i++) {
		heap[i] = (struct frame){ toy_runtime[me].innermost,
					  &functions[i], 10 * (i + 1) };
		toy_runtime[me].innermost = &heap[i];
	}
	then();
	toy_runtime[me].innermost = entry.caller;
}

static NOINLINE void sleep_for_good(void)
{
	pause();
	asm volatile("");
}

static NOINLINE void sleep_often(void)
{
	for (;;)
		usleep(2000);
}

static NOINLINE void native_between(void)
{
	toy_interpret(1, 2, me ? sleep_often : sleep_for_good);
	asm volatile("");
}

static NOINLINE void *native_first(void *number)
{
	me = (uintptr_t)number;
	pthread_setname_np(pthread_self(), me ? "often" : "for_good");
	toy_runtime[me].self = (uintptr_t)pthread_self();
	toy_interpret(0, 0, native_between);
	return number;
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, native_first, (void *)1))
		return 1;
	puts("ready");
	fflush(stdout);
	native_first((void *)0);
	return 0;
}
