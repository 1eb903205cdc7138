// SPDX-License-Identifier: MIT
/*
 * Coroutine on a stack of its own (makecontext(3)). It sleeps, computes, and switches to main,
 * in turn.
 */
#include "workload.h"
#include <ucontext.h>

#define STACK_BYTES 65536

static ucontext_t main_context, coroutine_context;

NOINLINE static void coroutine_sleep(void)
{
	sleep_ns(10 * NS_PER_MS);
	asm volatile("" ::: "memory");
}

NOINLINE static void coroutine_spin(void)
{
	for (volatile unsigned int turn = 0; turn < 2 * 1000 * 1000; turn++)
		;
}

NOINLINE static void coroutine_body(void)
{
	for (;;) {
		coroutine_sleep();
		coroutine_spin();
		swapcontext(&coroutine_context, &main_context);
	}
}

int main(void)
{
	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = malloc(STACK_BYTES);
	coroutine_context.uc_stack.ss_size = STACK_BYTES;
	coroutine_context.uc_link = &main_context;
	makecontext(&coroutine_context, coroutine_body, 0);
	start_thread_of(leave_with_test, "leaver");
	tell("ready");
	for (;;)
		swapcontext(&main_context, &coroutine_context);
}
