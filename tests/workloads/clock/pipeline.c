// SPDX-License-Identifier: MIT
/*
 * Four processes in a row, a → b → c → d. a sleeps, and each process passes a byte to the next
 * process, which waits for nothing else.
 *
 * usage: pipeline [SLEEP_US]
 * The program prints the process IDs. The processes begin when the test sends a line, and run
 * until the test is gone.
 */
#include "workload.h"

#include <signal.h>

static int to_b[2], to_c[2], to_d[2];

static void receive(int pipe[2])
{
	char byte;

	if (raw_syscall4(SYS_read, pipe[0], (long)&byte, 1, 0) != 1)
		_exit(1);
}

static void send(int pipe[2])
{
	if (raw_syscall4(SYS_write, pipe[1], (long)"", 1, 0) != 1)
		_exit(1);
}

NOINLINE void a_sleeps(uint64_t ns)
{
	sleep_ns(ns);
}

NOINLINE void a_wakes_b(void)
{
	send(to_b);
}

NOINLINE void b_waits(void)
{
	receive(to_b);
}

NOINLINE void b_wakes_c(void)
{
	send(to_c);
}

NOINLINE void c_waits(void)
{
	receive(to_c);
}

NOINLINE void c_wakes_d(void)
{
	send(to_d);
}

NOINLINE void d_waits(void)
{
	receive(to_d);
}

static void run_b(void)
{
	for (;;) {
		b_waits();
		b_wakes_c();
	}
}

static void run_c(void)
{
	for (;;) {
		c_waits();
		c_wakes_d();
	}
}

static void run_d(void)
{
	for (;;)
		d_waits();
}

static pid_t start(const char *name, void (*body)(void))
{
	pid_t pid = fork();

	check(pid < 0, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		name_thread(name);
		body();
	}
	return pid;
}

int main(int argc, char **argv)
{
	uint64_t sleep = argument_or(argc, argv, 1, 3000) * NS_PER_US;

	check(pipe(to_b) || pipe(to_c) || pipe(to_d), "pipe");
	name_thread("stage_a");
	tell("a %d b %d c %d d %d", getpid(), start("stage_b", run_b),
	     start("stage_c", run_c), start("stage_d", run_d));
	tell("ready");

	await_test();
	start_thread_of(leave_with_test, "leaver");
	for (;;) {
		a_sleeps(sleep);
		a_wakes_b();
	}
}
