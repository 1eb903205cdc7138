// SPDX-License-Identifier: MIT
/*
 * Program that copies its code over itself into anonymous memory, as programs do to have their
 * code in huge pages. The program then computes and sleeps in turn. With "changed" one byte of
 * the copy differs, in a function without callers.
 *
 * usage: copied [changed]
 */
#define _GNU_SOURCE
#include "workload.h"

NOINLINE static long spin_inner(void)
{
	volatile long count = 0;

	for (int round = 0; round < 200000; round++)
		count += round;
	return count;
}

NOINLINE static long spin_outer(void)
{
	long count = spin_inner();

	asm volatile("" ::: "memory");
	return count;
}

NOINLINE static void sleep_outer(void)
{
	sleep_ns(5 * NS_PER_MS);
	asm volatile("" ::: "memory");
}

__attribute__((used, noinline)) static void never_called(void)
{
	asm volatile("nop; nop; nop; nop");
}

static void copy_code(int is_changed)
{
	uintptr_t start = 0, end = 0, here = (uintptr_t)never_called;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096], *copy;

	check(!maps, "/proc/self/maps");
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 &&
		    start <= here && here < end)
			break;
	}
	fclose(maps);
	copy = mmap(NULL, end - start, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(copy == MAP_FAILED, "mmap");
	memcpy(copy, (void *)start, end - start);
	if (is_changed)
		copy[here - start] ^= 1;
	check(mprotect(copy, end - start, PROT_READ | PROT_EXEC), "mprotect");
	check(mremap(copy, end - start, end - start,
		     MREMAP_MAYMOVE | MREMAP_FIXED, start) == MAP_FAILED,
	      "mremap");
}

int main(int argc, char **argv)
{
	copy_code(argc > 1 && !strcmp(argv[1], "changed"));
	start_thread_of(leave_with_test, NULL);
	tell("ready");
	for (;;) {
		for (int round = 0; round < 10; round++)
			spin_outer();
		sleep_outer();
	}
}
