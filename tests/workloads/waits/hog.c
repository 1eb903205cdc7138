// SPDX-License-Identifier: MIT
/*
 * Thread that takes more and more memory after the test sends a line.
 *
 * usage: hog
 */
#include <sys/mman.h>

#include "workload.h"

#define PAGE 4096
#define MOST (1UL << 30)

static _Atomic uint32_t gate;

static void *take_memory(void *unused)
{
	volatile char *memory;

	(void)unused;
	name_thread("h_memory");
	wait_while(&gate, 0);
	memory = mmap(NULL, MOST, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(memory == MAP_FAILED, "mmap");
	for (unsigned long at = 0; at < MOST; at += PAGE)
		memory[at] = 1;
	return NULL;
}

int main(void)
{
	start_thread_of(take_memory, NULL);
	tell("ready");

	await_test();
	set_and_wake(&gate, 1);

	await_test();
	return 0;
}
