// SPDX-License-Identifier: MIT
/*
 * Program that sleeps once and ends.
 *
 * usage: sleeper MILLISECONDS
 */
#include "workload.h"

int main(int argc, char **argv)
{
	sleep_ns(argument_or(argc, argv, 1, 300) * NS_PER_MS);
	return 0;
}
