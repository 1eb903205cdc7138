// SPDX-License-Identifier: MIT
/*
 * Calls a tiny function of libc over and over, through the procedure linkage
 * table: much of the time is spent on the way there.
 *
 * usage: plt
 * main calls burn, burn calls call_library, and that calls abs. With
 * LD_BIND_NOT in the environment every call looks the function up.
 */
#include "workload.h"

NOINLINE uint64_t call_library(unsigned int turns)
{
	uint64_t sum = 0;

	for (unsigned int turn = 0; turn < turns; turn++)
		sum += (uint64_t)abs((int)turn);
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

	tell("ready");
	for (;;)
		sum = sum + burn(10 * 1000);
}
