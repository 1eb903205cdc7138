// SPDX-License-Identifier: MIT
/*
 * Program that computes in a function that the compiler inlines into a second function, and
 * the second one into a third.
 *
 * usage: inlined
 * main calls outermost. between is inlined into outermost, and innermost is inlined into
 * between.
 */
#include "workload.h"

ALWAYS_INLINE uint64_t innermost(uint64_t seed)
{
	for (int turn = 0; turn < 1000; turn++)
		seed = seed * seed + turn; /* the burning line */
	return seed;
}

ALWAYS_INLINE uint64_t between(uint64_t seed)
{
	uint64_t sum = innermost(seed);

	return sum ^ innermost(sum);
}

NOINLINE uint64_t outermost(uint64_t seed)
{
	return between(seed) + 1;
}

int main(void)
{
	volatile uint64_t sum = 0;

	tell("ready");
	for (;;)
		sum = outermost(sum);
}
