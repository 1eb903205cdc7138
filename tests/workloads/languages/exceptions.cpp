// SPDX-License-Identifier: MIT
/*
 * C++ that waits in places with odd stacks: in a catch block, in a destructor during an
 * exception, and in a noexcept lambda behind a std::function. It also waits in a callback of a
 * C library, and after an exception met a noexcept function.
 *
 * usage: exceptions wait|hold
 *   wait: waits over and over, for some ms each time
 *   hold: waits once, for ever
 *
 * A thread's chain is thread_root, thread_loop, then its links.
 */
#include <exception>
#include <functional>

#include "workload.h"

#if defined(__GNUC__) && !defined(__clang__)
#define LINK extern "C" __attribute__((noipa))
#else
#define LINK extern "C" NOINLINE
#endif

struct walk {
	const char *name;
	int (*body)(int depth);
};

static uint64_t wait_ns = 3 * NS_PER_MS;
static volatile int three = 3;

LINK int end_nanosleep(int seed)
{
	struct timespec left = {};

	left.tv_sec = (time_t)(wait_ns / NS_PER_S);
	left.tv_nsec = (long)(wait_ns % NS_PER_S);
	return nanosleep(&left, nullptr) + seed;
}

/* Object whose destructor runs while the stack is unwound, and leaves a trace there. */
struct Guard {
	volatile int bytes[50];

	explicit Guard(int seed)
	{
		bytes[three] = seed;
	}
	NOINLINE ~Guard()
	{
		bytes[0] = bytes[three] + 1;
	}
};

LINK int throw_it(int depth)
{
	volatile int bytes[100];

	bytes[three] = depth;
	if (bytes[three] >= 0)
		throw bytes[three];
	return bytes[three] + 1;
}

LINK int pass_it(int depth)
{
	Guard guard(depth);

	return throw_it(depth) + guard.bytes[three];
}

/* Waits in a catch block, two frames above the throw. */
LINK int catch_it(int depth)
{
	volatile int bytes[70];

	bytes[three] = depth;
	try {
		return pass_it(depth) + bytes[three];
	} catch (int thrown) {
		return end_nanosleep(thrown) + bytes[three];
	}
}

/* Waits in the catch block of a function that another catch block calls. */
LINK int catch_in_catch(int depth)
{
	try {
		return throw_it(depth);
	} catch (int thrown) {
		return catch_it(thrown) + 1;
	}
}

/* Waits in a destructor while an exception is on its way to its handler. */
LINK int wait_in_destructor(int seed)
{
	return end_nanosleep(seed) + three;
}

struct WaitingGuard {
	int seed;

	~WaitingGuard()
	{
		seed = wait_in_destructor(seed) + 1;
	}
};

LINK int cleans_up(int depth)
{
	WaitingGuard guard{ depth };

	return throw_it(depth) + guard.seed;
}

LINK int catches_cleanup(int depth)
{
	try {
		return cleans_up(depth) + 1;
	} catch (int thrown) {
		return thrown + three;
	}
}

/* Waits in a noexcept lambda that a std::function in a template calls. */
template <typename Body> NOINLINE int hand_to(const Body &body, int depth)
{
	volatile int bytes[30];

	bytes[three] = depth;
	return body(depth) + bytes[three];
}

LINK int from_lambda(int seed)
{
	return end_nanosleep(seed) + 1;
}

LINK int through_function(int depth)
{
	volatile int own = depth;
	std::function<int(int)> body = [&own](int seed) noexcept {
		return from_lambda(seed) + own;
	};

	return hand_to(body, depth) + 1;
}

/* Waits in a function that qsort calls back. */
LINK int compare(const void *left, const void *right)
{
	int order = *(const int *)left - *(const int *)right;

	return end_nanosleep(order) + order;
}

LINK int sorts(int depth)
{
	int pair[2] = { depth + 1, depth };

	qsort(pair, 2, sizeof(pair[0]), compare);
	return pair[0] + three;
}

/* Waits after an exception met a noexcept function. The stack is the stack of the throw. */
LINK void on_terminate()
{
	for (volatile int sum = 0;;)
		sum = sum + end_nanosleep(three);
}

LINK int not_throwing(int depth) noexcept
{
	return pass_it(depth) + three;
}

LINK int terminates(int depth)
{
	std::set_terminate(on_terminate);
	return not_throwing(depth) + three;
}

static struct walk walks[] = {
	{ "catch", catch_in_catch },	  { "destructor", catches_cleanup },
	{ "function", through_function }, { "callback", sorts },
	{ "terminate", terminates },
};

LINK __attribute__((noreturn)) void thread_loop(struct walk *walk)
{
	for (volatile int sum = 0;;)
		sum = sum + walk->body(three);
}

LINK void *thread_root(void *argument)
{
	struct walk *walk = (struct walk *)argument;

	name_thread(walk->name);
	thread_loop(walk);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "hold") == 0)
		wait_ns = 1000 * NS_PER_S;
	for (struct walk &walk : walks)
		start_thread_of(thread_root, &walk);
	sleep_ns(100 * NS_PER_MS);
	tell("ready");
	for (;;)
		await_test();
}
