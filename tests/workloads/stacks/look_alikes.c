// SPDX-License-Identifier: MIT
/*
 * Naps at one instruction with one stack pointer, called from two functions
 * each way: what tells them apart is further up the stack.
 *
 * usage: look_alikes [ROUNDS]
 * Prints for each of the functions the nanoseconds that its naps took, and
 * for each way whether its stack pointers are the same: 1 or 0.
 */
#include "workload.h"

#include <alloca.h>

static uint64_t stack_pointer;
/* So that no two functions are the same, and no call is the last deed. */
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

/* Two that differ in the return address next to the leaf. */
CALLER(red, doze, 0)
CALLER(blue, doze, 1)

/* Two in one further up. */
CALLER(midway, doze, 2)
CALLER(north, midway, 3)
CALLER(south, midway, 4)

/* And these in the frame pointer, too, which alone says where that is. */

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
