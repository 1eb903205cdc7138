// SPDX-License-Identifier: MIT
/*
 * Process whose leader ends while other threads live on. One thread sleeps for ever. One reads
 * a named pipe, into which another one writes every 10 ms.
 *
 * usage: left_by_leader PIPE
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "workload.h"

static int fifo;

NOINLINE static void inner_sleep(void)
{
	sleep_ns(3600 * NS_PER_S);
	asm volatile("" ::: "memory");
}

NOINLINE static void outer_sleep(void)
{
	inner_sleep();
	asm volatile("" ::: "memory");
}

static void *sleep_for_good(void *unused)
{
	name_thread("sleeper");
	outer_sleep();
	return unused;
}

static void *read_for_good(void *unused)
{
	char byte;

	name_thread("reader");
	while (read(fifo, &byte, 1) == 1)
		;
	return unused;
}

static void *write_for_good(void *unused)
{
	do
		sleep_ns(10 * NS_PER_MS);
	while (write(fifo, "x", 1) == 1);
	return unused;
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "";

	check(mkfifo(path, 0600), "mkfifo");
	fifo = open(path, O_RDWR);
	check(fifo < 0, "open");
	start_thread_of(sleep_for_good, NULL);
	start_thread_of(read_for_good, NULL);
	start_thread_of(write_for_good, NULL);
	start_thread_of(leave_with_test, NULL);
	tell("ready");
	pthread_exit(NULL);
}
