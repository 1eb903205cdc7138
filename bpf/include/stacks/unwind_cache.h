/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Walks that were made before. Threads block at the same few places over and
 * over, and what a walk finds follows from the registers it starts from, the
 * words it reads and the tables. Where all of these are as they were, so is the
 * stack; and comparing the words takes a fraction of the time of a walk.
 *
 * A walk is noted as it is made. A word of which nothing was made, as most
 * saved frame pointers are, is not noted: it may change.
 */
#ifndef SYSTEMSCOPE_UNWIND_CACHE_H
#define SYSTEMSCOPE_UNWIND_CACHE_H

#include "events.h"
#include "stacks/user_memory.h"

#define CACHED_WALKS 128
#define CACHED_WORDS 128

struct stack_word {
	u64 address;
	u64 value;
};

struct walk_start {
	/* Of which program, and by which of its tables. */
	u64 instance;
	u64 generation;
	/* The registers at the leaf. */
	u64 ip;
	u64 sp;
	u64 bp;
};

struct cached_walk {
	/* The stack's ID; 0 while there is none. */
	u64 id;
	struct walk_start start;
	/* Whether use was made of the bp at the leaf. */
	u32 bp_matters;
	u32 word_count;
	struct stack_word words[CACHED_WORDS];
};

/* Direct-mapped. Written by its CPU alone, which nothing preempts meanwhile. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CACHED_WALKS);
	__type(key, u32);
	__type(value, struct cached_walk);
} unwind_cache SEC(".maps");

static __always_inline struct cached_walk *find_cached(u32 slot)
{
	return bpf_map_lookup_elem(&unwind_cache, &slot);
}

/* What is noted of a walk in progress. */
struct walk_notes {
	/* Whether it can be remembered, as far as it has come. */
	bool complete;
	bool bp_matters;
	/* Where in unwind_cache. */
	u32 slot;
	u32 word_count;
	/* Where bp was read, or one of the following. */
	u64 bp_from;
};

/* Nothing is to be noted of bp. */
#define BP_FROM_NOWHERE 0ULL
#define BP_FROM_LEAF 1ULL

/* The walk depends on the word at @address, which is @value. */
static __always_inline void note_word(struct walk_notes *notes, u64 address,
				      u64 value)
{
	u32 count = notes->word_count;
	struct cached_walk *walk;

	if (!notes->complete)
		return;
	walk = find_cached(notes->slot);
	if (!walk || count >= CACHED_WORDS) {
		notes->complete = false;
		return;
	}
	notes->word_count = count + 1;
	/* Older verifiers lose sight of the comparison. */
	asm volatile("%0 &= 127" : "+r"(count));
	walk->words[count].address = address;
	walk->words[count].value = value;
}

/* The walk depends on its bp, which is @bp. */
static __always_inline void note_bp(struct walk_notes *notes, u64 bp)
{
	u64 from = notes->bp_from;

	if (from == BP_FROM_LEAF)
		notes->bp_matters = true;
	else if (from != BP_FROM_NOWHERE)
		note_word(notes, from, bp);
	notes->bp_from = BP_FROM_NOWHERE;
}

/*
 * A piece of the stack, so that not each word has to be read by itself. Pieces
 * are aligned, so that none has a part in a page that need not be there.
 */
#define STACK_PIECE 256

struct stack_piece {
	u64 start;
	/* With room for a word at any index of 8 bits. */
	u8 bytes[STACK_PIECE + sizeof(u64)];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_piece);
} stack_pieces SEC(".maps");

#define WORDS_AT_ONCE 16

/*
 * Whether some words, from @first on, are as they were. Global, and so with scalars
 * only: the verifier looks at it once.
 */
__noinline int some_words_are_the_same(u32 slot, u32 first)
{
	struct cached_walk *walk = find_cached(slot);
	struct stack_piece *piece;
	u32 zero = 0;

	piece = bpf_map_lookup_elem(&stack_pieces, &zero);
	if (!walk || !piece)
		return false;
	/* So that no address is within it. */
	if (!first)
		piece->start = -(u64)STACK_PIECE;
	for (u32 i = 0; i < WORDS_AT_ONCE; i++) {
		u64 address, offset;
		u32 at = first + i;

		if (at >= walk->word_count)
			break;
		asm volatile("%0 &= 127" : "+r"(at));
		address = walk->words[at].address;
		offset = address - piece->start;
		if (offset > STACK_PIECE - sizeof(u64)) {
			piece->start = address & -(u64)STACK_PIECE;
			offset = address - piece->start;
			if (offset > STACK_PIECE - sizeof(u64) ||
			    !read_user(piece->bytes, STACK_PIECE, piece->start))
				return false;
		}
		asm volatile("%0 &= 255" : "+r"(offset));
		if (*(u64 *)(piece->bytes + offset) != walk->words[at].value)
			return false;
	}
	return true;
}

/* Whether all of them are. */
__noinline int words_are_the_same(u32 slot)
{
	struct cached_walk *walk = find_cached(slot);

	if (!walk)
		return false;
	for (u32 first = 0; first < CACHED_WORDS; first += WORDS_AT_ONCE) {
		if (first >= walk->word_count)
			break;
		if (!some_words_are_the_same(slot, first))
			return false;
	}
	return true;
}

/* The ID of the stack that a walk from @start would find, or 0 if not known. */
static __always_inline u64 look_up_walk(struct walk_notes *notes,
					const struct walk_start *start)
{
	u64 hash = hash_word(hash_word(start->instance, start->ip), start->sp);
	struct cached_walk *walk;

	notes->slot = hash % CACHED_WALKS;
	walk = find_cached(notes->slot);
	if (!walk || !walk->id || walk->start.instance != start->instance ||
	    walk->start.generation != start->generation ||
	    walk->start.ip != start->ip || walk->start.sp != start->sp ||
	    (walk->bp_matters && walk->start.bp != start->bp))
		return 0;
	return words_are_the_same(notes->slot) ? walk->id : 0;
}

/* The same walk is now made: begins to note it. */
static __always_inline void begin_notes(struct walk_notes *notes,
					const struct walk_start *start)
{
	struct cached_walk *walk = find_cached(notes->slot);

	if (!walk)
		return;
	walk->id = 0;
	walk->start = *start;
	notes->complete = true;
	notes->bp_matters = false;
	notes->word_count = 0;
	notes->bp_from = BP_FROM_LEAF;
}

/* The walk that was noted reached the root: its stack is @id. */
static __always_inline void cache_walk(struct walk_notes *notes, u64 id)
{
	struct cached_walk *walk = find_cached(notes->slot);

	if (!walk || !notes->complete)
		return;
	walk->bp_matters = notes->bp_matters;
	walk->word_count = notes->word_count;
	walk->id = id;
}

#endif
