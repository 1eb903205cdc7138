// SPDX-License-Identifier: MIT
/*
 * Program that calls a tiny function of libc over and over through the procedure linkage
 * table. Much of its time is spent on the way to this function.
 *
 * usage: plt
 * main calls burn, burn calls call_library, and call_library calls abs. With LD_BIND_NOT in
 * the environment every call looks the function up.
 *
 * On most CPUs a jump ends before an interrupt comes. The program therefore flushes the
 * table's code from the caches before each call, and the CPU waits for the code there.
 */
#include "workload.h"

#include <link.h>

#define MAX_ENTRIES 16

extern const char __ehdr_start[];

static void *entries[MAX_ENTRIES];
static size_t entry_count;

/*
 * Finds the table's entries. Before the first call of a function, the jump of its entry leads
 * back into the entry.
 */
static void find_entries(void)
{
	uintptr_t base = (uintptr_t)__ehdr_start;
	uintptr_t relocations = 0;
	const ElfW(Rela) * first;
	size_t bytes = 0;

	for (ElfW(Dyn) *row = _DYNAMIC; row->d_tag != DT_NULL; row++) {
		if (row->d_tag == DT_JMPREL)
			relocations = row->d_un.d_ptr;
		if (row->d_tag == DT_PLTRELSZ)
			bytes = row->d_un.d_val;
	}
	/* Some C libraries leave the address as it is in the file. */
	if (relocations < base)
		relocations += base;
	first = (const void *)relocations;
	for (; entry_count < bytes / sizeof(*first); entry_count++) {
		if (entry_count == MAX_ENTRIES)
			break;
		entries[entry_count] =
			*(void **)(base + first[entry_count].r_offset);
	}
}

ALWAYS_INLINE void throw_out(void *address)
{
#if defined(__x86_64__)
	asm volatile("clflush (%0)" : : "r"(address) : "memory");
#elif defined(__aarch64__)
	asm volatile("ic ivau, %0\n\tdc civac, %0" : : "r"(address) : "memory");
#endif
}

NOINLINE uint64_t call_library(unsigned int turns)
{
	uint64_t sum = 0;

	for (unsigned int turn = 0; turn < turns; turn++) {
		for (size_t entry = 0; entry < entry_count; entry++)
			throw_out(entries[entry]);
		sum += (uint64_t)abs((int)turn);
	}
	return sum;
}

NOINLINE uint64_t burn(unsigned int turns)
{
	volatile uint64_t numbers[20];

	numbers[turns % 20] = call_library(turns);
	return numbers[turns % 20] + 1;
}

int main(void)
{
	volatile uint64_t sum = 0;

	find_entries();
	tell("ready");
	for (;;)
		sum = sum + burn(10 * 1000);
}
