/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Reads the frames of a language's runtime: the chain of frames that the runtime keeps. */
#ifndef SYSTEMSCOPE_CHAIN_H
#define SYSTEMSCOPE_CHAIN_H

#include "languages/languages.h"
#include "stacks/unwind_tables.h"
#include "stacks/user_memory.h"
#include "stacks/walk.h"

/* Maximum frames of a runtime per inner loop. */
#define CHAIN_FRAMES_AT_ONCE 8

/*
 * Defines walk_NAME_frames(), which stores at most CHAIN_FRAMES_AT_ONCE frames of a
 * language, and returns an enum chain_end. Each language has a function of its own. One
 * function for all would take more stack than Linux 5.10 allows.
 */
#define WALK_FRAMES(NAME, name)                                                \
	__noinline int walk_##name##_frames(u32 kind)                          \
	{                                                                      \
		struct stack_scratch *scratch = find_stack_scratch(kind);      \
		struct mixed_stack *stack = find_mixed_scratch(kind);          \
		struct language_layout *layout;                                \
		int end = CHAIN_NO_THREAD;                                     \
                                                                               \
		if (!scratch || !stack)                                        \
			return end;                                            \
		layout = find_layout(scratch->chain.layout);                   \
		if (!layout)                                                   \
			return end;                                            \
		for (u32 i = 0; i < CHAIN_FRAMES_AT_ONCE; i++) {               \
			if (stack->count >= max_stack)                         \
				return CHAIN_TOO_DEEP;                         \
			end = name##_step(&scratch->chain, layout, stack);     \
			if (end != CHAIN_GOES_ON)                              \
				break;                                         \
		}                                                              \
		return end;                                                    \
	}

LANGUAGES_WITH_CHAINS(WALK_FRAMES)

/* Stores some frames of a runtime. Returns an enum chain_end. */
static __always_inline int walk_chain_frames(u32 kind, u32 language)
{
#define FRAMES_OF(NAME, name) IN_LANGUAGE(NAME, walk_##name##_frames(kind))
	switch (language) {
		LANGUAGES_WITH_CHAINS(FRAMES_OF)
	}
	return CHAIN_NO_THREAD;
}

/* Code at an address, as unwind tables show it. */
enum code_kind {
	/* User space has read no mapping there. */
	CODE_UNKNOWN,
	/* Code without a rule, such as code that a runtime compiled. */
	CODE_BARE,
	CODE_WITH_RULE,
};

/*
 * Returns the enum code_kind of the code at @address in the process of the unwind in
 * the scratch of @kind.
 */
__noinline int find_code_kind(u32 kind, u64 address)
{
	struct stack_scratch *scratch = find_stack_scratch(kind);
	struct unwind_mapping *mapping;
	struct unwind_rule *rule;

	if (!scratch)
		return CODE_UNKNOWN;
	mapping = find_mapping(scratch->walk.first_mapping,
			       scratch->walk.mapping_count, address);
	if (!mapping)
		return CODE_UNKNOWN;
	rule = find_rule(mapping->first_page, mapping->page_count,
			 address - mapping->bias);
	return rule && rule->cfa != CFA_NONE ? CODE_WITH_RULE : CODE_BARE;
}

/*
 * Notes where the thread was interrupted. Returns false if the code there has a rule.
 * Such code does not belong to a runtime that begins its chain at the leaf.
 */
__noinline int note_interrupted(u32 kind)
{
	struct stack_scratch *scratch = find_stack_scratch(kind);
	struct mixed_stack *stack = find_mixed_scratch(kind);
	u64 words[2];

	if (!scratch || !stack ||
	    find_code_kind(kind, scratch->walk.ip) == CODE_WITH_RULE)
		return false;
	note_mark(&scratch->chain, stack, scratch->walk.ip, CHAIN_INTERRUPTED,
		  0);
	if (!read_user(words, sizeof(words), scratch->walk.sp))
		return true;
	for (u32 i = 0; i < 2; i++) {
		if (find_code_kind(kind, words[i]) != CODE_BARE)
			continue;
		note_mark(&scratch->chain, stack, words[i], CHAIN_INTERRUPTED,
			  0);
		break;
	}
	return true;
}

/*
 * Finds the current thread's innermost frame in runtime number @index of the process,
 * and starts a chain there in the scratch of @kind. @self: pthread_self() of the
 * thread. Returns an enum chain_end.
 */
__noinline int start_runtime(u32 kind, u32 index, u64 self)
{
	struct stack_scratch *scratch = find_stack_scratch(kind);
	struct language_runtime *runtime;
	struct language_layout *layout;
	struct chain_walk *walk;

	if (!scratch)
		return CHAIN_NO_THREAD;
	walk = &scratch->chain;
	barrier_var(index);
	runtime = &scratch->runtimes[index & (PROCESS_RUNTIMES - 1)];
	walk->language = runtime->language;
	walk->layout = runtime->layout;
	walk->base = runtime->base;
	walk->leaf.php_frame = scratch->walk.registers.REGS_PHP_FRAME;
	walk->leaf.php_instruction =
		scratch->walk.registers.REGS_PHP_INSTRUCTION;
	walk->leaf.ip = scratch->walk.ip;
	walk->leaf.sp = scratch->walk.sp;
	walk->leaf.bp = scratch->walk.bp;
	walk->leaf.v8_function = scratch->walk.registers.REGS_V8_FUNCTION;
	walk->leaf.v8_bytecode = scratch->walk.registers.REGS_V8_BYTECODE;
	walk->leaf.v8_offset = scratch->walk.registers.REGS_V8_OFFSET;
	walk->leaf.is_exact = scratch->walk.ip_is_exact;
	walk->is_at_leaf = false;
	layout = find_layout(walk->layout);
	return layout ? start_chain(walk, layout, self) : CHAIN_NO_THREAD;
}

/*
 * Reads the current thread's frames from the first runtime that has any, into the
 * scratch of @kind. @self: pthread_self() of the thread. Returns an enum chain_end.
 */
__noinline int walk_chain(u32 kind, u64 self)
{
	struct stack_scratch *scratch = find_stack_scratch(kind);
	struct mixed_stack *stack = find_mixed_scratch(kind);
	int end = CHAIN_NO_THREAD;

	if (!scratch || !stack)
		return end;
	stack->count = 0;
	for (u32 i = 0; i < PROCESS_RUNTIMES; i++) {
		scratch->chain.code_bytes = 0;
		end = start_runtime(kind, i, self);
		if (end == CHAIN_GOES_ON || end == CHAIN_ON_STACK)
			break;
	}
	if (end == CHAIN_ON_STACK)
		stack->end = CHAIN_WHOLE;
	if (end != CHAIN_GOES_ON)
		return end;
	/* Else the compiler uses the 0 in @end, which the verifier does not know. */
	barrier_var(end);
	if (scratch->chain.is_at_leaf && !note_interrupted(kind))
		return CHAIN_NO_THREAD;
	for (u32 i = 0; i <= CHAIN_DEPTH / CHAIN_FRAMES_AT_ONCE; i++) {
		end = walk_chain_frames(kind, scratch->chain.language);
		if (end != CHAIN_GOES_ON)
			break;
	}
	stack->end = end;
	/* A hash of 0 means that there are no frames, so bit 0 is set here. */
	scratch->chain.hash = hash_word(scratch->chain.hash, end) | 1;
	return end;
}

#endif
