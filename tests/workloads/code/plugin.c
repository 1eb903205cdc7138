// SPDX-License-Identifier: MIT
/*
 * Library for the workload late. plugin_outer calls plugin_inner, and plugin_inner calls back.
 */
#include "workload.h"

__attribute__((noinline, visibility("hidden"))) uint64_t
plugin_inner(uint64_t (*call_back)(uint64_t), unsigned int salt)
{
	volatile unsigned char bytes[salt + 50];

	bytes[salt] = 1;
	return call_back(salt) + bytes[salt];
}

uint64_t plugin_outer(uint64_t (*call_back)(uint64_t), unsigned int salt)
{
	volatile unsigned int numbers[100];

	numbers[salt] = salt + 1;
	return plugin_inner(call_back, numbers[salt] - 1) + numbers[salt];
}
