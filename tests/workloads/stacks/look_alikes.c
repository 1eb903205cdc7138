// SPDX-License-Identifier: MIT
/*
 * Naps at the same instruction with the same stack pointer, called from three pairs of
 * functions. Only frames further up the stack tell the functions of a pair apart.
 *
 * usage: look_alikes [ROUNDS]
 * The program prints the time of the naps of each function in ns. For each pair it prints 1 if
 * both stack pointers are the same, and 0 otherwise.
 */
#include "workload.h"

#include <alloca.h>

static uint64_t stack_pointer;
/* Makes all functions differ, and prevents tail calls. */
static volatile uint64_t kept[8];

static NOINLINE void doze(uint64_t ns)
{
	asm volatile("mov %%rsp, %0" : "=r"(stack_pointer));
	sleep_ns(ns);
}

#define CALLER(name, callee, number)                                           \
	static NOINLINE void name(uint64_t ns)                                 \
	{                                                                      \
		callee(ns);                                                    \
		kept[number]++;                                                \
	}

/* Two callers that differ in the return address next to the leaf. */
CALLER(red, doze, 0)
CALLER(blue, doze, 1)

/* Two callers that differ in a return address further up. */
CALLER(midway, doze, 2)
CALLER(north, midway, 3)
CALLER(south, midway, 4)

/*
 * Two callers that also differ in the frame pointer, which alone leads to that return address.
 */

static NOINLINE void in_room(uint64_t size, uint64_t ns)
{
	volatile char *room = alloca(size);

	room[0] = 0;
	doze(ns);
	kept[5] += room[0];
}

static NOINLINE void narrow(uint64_t ns)
{
	in_room(512, ns);
	kept[6]++;
}

static NOINLINE void wide(uint64_t ns)
{
	volatile char room[256];

	room[0] = 0;
	in_room(256, ns);
	kept[7] += room[0];
}

static struct {
	const char *name;
	void (*nap)(uint64_t ns);
	uint64_t stack_pointer;
	uint64_t took;
} naps[] = {
	{ "red", red },	    { "blue", blue },	  { "north", north },
	{ "south", south }, { "narrow", narrow }, { "wide", wide },
};

#define NAPS (sizeof(naps) / sizeof(naps[0]))

int main(int argc, char **argv)
{
	uint64_t rounds = argument_or(argc, argv, 1, 100);
	uint64_t before;

	tell("ready");

	await_test();
	for (uint64_t round = 0; round < rounds; round++) {
		for (uint64_t i = 0; i < NAPS; i++) {
			before = now_ns();
			naps[i].nap((1 + i / 2 + i % 2 * 2) * NS_PER_MS);
			naps[i].took += now_ns() - before;
			naps[i].stack_pointer = stack_pointer;
		}
	}
	for (uint64_t i = 0; i < NAPS; i++)
		tell("%s %lu", naps[i].name, naps[i].took);
	for (uint64_t i = 0; i < NAPS; i += 2)
		tell("alike_%s %d", naps[i].name,
		     naps[i].stack_pointer == naps[i + 1].stack_pointer);
	tell("done");

	await_test();
	return 0;
}
