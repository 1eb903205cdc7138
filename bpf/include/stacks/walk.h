/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* State of an unwind, and the scratch memory in which it is kept. */
#ifndef SYSTEMSCOPE_WALK_H
#define SYSTEMSCOPE_WALK_H

#include "events.h"
#include "frames.h"
#include "languages/languages.h"
#include "stacks/unwind_cache.h"
#include "stacks/unwind_tables.h"

/* Reason for the end of an unwind, in the order of `End` in shared/unwind. */
enum walk_end {
	/* The unwind goes on. */
	WALK_GOES_ON,
	/* The unwind reached the first function of the thread. */
	WALK_REACHED_ROOT,
	/* An address is in no known mapping. */
	WALK_NO_MAPPING,
	/* The stack could not be read. */
	WALK_READ_FAILED,
	/* The stack has more frames than the maximum. */
	WALK_TOO_DEEP,
	/* The code has no rule, and no frame pointer leads to the caller. */
	WALK_NO_RULE,
	/* The code is 32-bit code, whose stacks are not unwound. */
	WALK_32_BIT,
	/* The kernel's helper unwound the stack and does not report the end. */
	WALK_NOT_KNOWN,
	/* Flag: the unwind found a frame by its frame pointer. */
	WALK_BY_FRAME_POINTER = 0x100,
};

USER_SPACE_KNOWS(enum, walk_end);

enum call_graph {
	CALL_GRAPH_AUTO,
	CALL_GRAPH_FP,
	CALL_GRAPH_DWARF,
};

const volatile enum call_graph call_graph = CALL_GRAPH_AUTO;
/* Maximum frames of a native stack, and maximum frames of a runtime. */
const volatile u32 max_stack = STACK_DEPTH;

/* An unwind in progress. */
struct walk {
	u64 ip;
	u64 sp;
	u64 bp;
	/* All user registers; valid only at the leaf. */
	struct pt_regs registers;
	bool at_leaf;
	/* False if ip is a return address, true if the code was interrupted there. */
	bool ip_is_exact;
	bool by_frame_pointer;
	u32 depth;
	/* Range of the process's mappings in unwind_mappings. */
	u32 first_mapping;
	u32 mapping_count;
	/* Mapping of the last address. */
	struct unwind_mapping mapping;
	/*
	 * Code of a stub. It is not on the stack, because all functions of an unwind
	 * together have only 512 bytes of stack.
	 */
	u64 code[2];
	/* Address to which uretprobes make functions return, or 0. */
	u64 trampoline;
	struct walk_notes notes;
};

/*
 * Scratch memory for one stack per CPU and context. Scheduler hooks and samples run one
 * at a time on a CPU. A wake-up can interrupt a thread's return, and any of these
 * programs can preempt a task iterator. Returns and iterators thus have scratch of
 * their own.
 */
enum scratch {
	SCRATCH_HOOK,
	SCRATCH_RETURN,
	SCRATCH_ITERATOR,
	SCRATCH_KINDS,
};

struct stack_scratch {
	struct walk walk;
	struct stack_event event;
	/* CFA of each frame. */
	u64 cfas[STACK_DEPTH];
	/* The process's runtimes, as find_process() read them. */
	struct language_runtime runtimes[PROCESS_RUNTIMES];
	struct chain_walk chain;
};

/*
 * Returns @depth with a bound that the verifier sees, for use as an index into the
 * frames. Older verifiers forget the bound from a comparison if the compiler spills the
 * value.
 */
static __always_inline u32 frame_index(u32 depth)
{
	asm volatile("%0 &= 1023" : "+r"(depth));
	return depth;
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_KINDS);
	__type(key, u32);
	__type(value, struct stack_scratch);
} stack_scratch SEC(".maps");

/* Scratch memory for the frames of a runtime. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_KINDS);
	__type(key, u32);
	__type(value, struct mixed_stack);
} mixed_stacks SEC(".maps");

/* Scratch memory for a function of a runtime. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_KINDS);
	__type(key, u32);
	__type(value, struct interpreted_function);
} interpreted_functions SEC(".maps");

static __always_inline struct stack_scratch *find_stack_scratch(u32 kind)
{
	u32 slot = kind;

	return bpf_map_lookup_elem(&stack_scratch, &slot);
}

static __always_inline struct mixed_stack *find_mixed_scratch(u32 kind)
{
	u32 slot = kind;

	return bpf_map_lookup_elem(&mixed_stacks, &slot);
}

#endif
