/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Cache of unwinds. Threads block at the same few places over and over. The registers
 * at the leaf, the words that the unwind reads and the tables determine the stack. If
 * all of these are unchanged, the stack is the same. A comparison of the words takes a
 * fraction of the time of an unwind.
 *
 * The unwind notes each word on which its result depends. It does not note a word that
 * it reads but does not use, such as most saved frame pointers. Such a word may change.
 */
#ifndef SYSTEMSCOPE_UNWIND_CACHE_H
#define SYSTEMSCOPE_UNWIND_CACHE_H

#include "events.h"
#include "stacks/user_memory.h"

#define CACHED_WALKS 128
#define CACHED_WORDS 256

struct stack_word {
	u64 address;
	u64 value;
};

struct walk_start {
	/* Program and generation of its tables. */
	u64 instance;
	u64 generation;
	/* Registers at the leaf. */
	u64 ip;
	u64 sp;
	u64 bp;
};

struct cached_walk {
	/* The stack's ID; 0 if the entry is empty. */
	u64 id;
	struct walk_start start;
	/* 1 if the unwind used the bp at the leaf. */
	u32 bp_matters;
	u32 word_count;
	struct stack_word words[CACHED_WORDS];
};

/* Direct-mapped. Only its own CPU writes it, and no program preempts the write. */
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

/* Notes of an unwind in progress. */
struct walk_notes {
	/* True as long as the unwind can be cached. */
	bool complete;
	bool bp_matters;
	/* Index in unwind_cache. */
	u32 slot;
	u32 word_count;
	/* Address from which the unwind read bp, or BP_FROM_NOWHERE or BP_FROM_LEAF. */
	u64 bp_from;
};

/* bp needs no note: it is already noted, or it is lost. */
#define BP_FROM_NOWHERE 0ULL
#define BP_FROM_LEAF 1ULL

/* Notes that the unwind depends on the word at @address, which is @value. */
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
	/* Older verifiers forget the comparison above. */
	asm volatile("%0 &= 255" : "+r"(count));
	walk->words[count].address = address;
	walk->words[count].value = value;
}

/* Notes that the unwind depends on its frame pointer, whose value is @bp. */
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
 * Size in bytes of a piece of the stack. One read gets a piece, in place of one read
 * per word. Pieces are aligned, so none reaches into the next page, which may be
 * missing.
 */
#define STACK_PIECE 256

/*
 * Bytes above the stack pointer that count as stack. Words outside, which tell which code
 * runs, are far from each other, so each needs a read of its own.
 */
#define STACK_SPAN (1 << 20)

struct stack_piece {
	u64 start;
	/* Word outside the stack. */
	u64 word;
	/* Long enough for a word at any 8-bit offset. */
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
 * Returns whether the words of the unwind in @slot are unchanged: at most WORDS_AT_ONCE
 * words, from @first on. The function is global and takes scalars, so the verifier
 * checks it once.
 */
__noinline int is_part_unchanged(u32 slot, u32 first)
{
	struct cached_walk *walk = find_cached(slot);
	struct stack_piece *piece;
	u32 zero = 0;

	piece = bpf_map_lookup_elem(&stack_pieces, &zero);
	if (!walk || !piece)
		return false;
	/*
	 * No address is within a piece with this start, so the first word needs a read.
	 */
	if (!first)
		piece->start = -(u64)STACK_PIECE;
	for (u32 i = 0; i < WORDS_AT_ONCE; i++) {
		u64 address, offset;
		u32 at = first + i;

		if (at >= walk->word_count)
			break;
		asm volatile("%0 &= 255" : "+r"(at));
		address = walk->words[at].address;
		if (address - walk->start.sp >= STACK_SPAN) {
			if (!read_user(&piece->word, sizeof(piece->word),
				       address) ||
			    piece->word != walk->words[at].value)
				return false;
			continue;
		}
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

/* Returns whether all words of the unwind in @slot are unchanged. */
__noinline int is_unchanged(u32 slot)
{
	struct cached_walk *walk = find_cached(slot);

	if (!walk)
		return false;
	for (u32 first = 0; first < CACHED_WORDS; first += WORDS_AT_ONCE) {
		if (first >= walk->word_count)
			break;
		if (!is_part_unchanged(slot, first))
			return false;
	}
	return true;
}

/*
 * Returns the ID of the stack that an unwind from @start would find, or 0 if the cache
 * does not have it.
 */
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
	return is_unchanged(notes->slot) ? walk->id : 0;
}

/* Begins the notes of an unwind from @start. */
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

/* Caches the noted unwind, which reached the root, as the stack @id. */
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
