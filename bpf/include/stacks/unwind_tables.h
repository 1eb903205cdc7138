/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Unwind tables, which user space makes from .eh_frame. For an address in a process
 * they give the rule that leads from the address's frame to the caller's frame.
 *
 *  process -> its mappings, sorted -> pages of the mapped file's table
 *          -> rows of a page, sorted -> rule
 *
 * A row is one word and covers addresses up to the next row. The rows of all files lie
 * in shards. All rows of a page lie in the same shard. User space adds and releases
 * shards while programs run.
 */
#ifndef SYSTEMSCOPE_UNWIND_TABLES_H
#define SYSTEMSCOPE_UNWIND_TABLES_H

#include "kernel_types.h"
#include "languages/language.h"
#include <bpf/bpf_helpers.h>

/* Values of unwind_rule.cfa, explained in shared/unwind/src/rule.rs. */
enum {
	CFA_NONE,
	CFA_STACK_POINTER,
	CFA_FRAME_POINTER,
	CFA_PLT,
	CFA_SIGNAL_FRAME,
	CFA_WORD_AT_STACK_POINTER,
	CFA_WORD_AT_FRAME_POINTER,
	CFA_ROOT,
	CFA_SWITCHED_STACK,
	CFA_CLONED,
	CFA_LINK_REGISTER,
	CFA_REGISTER = 16,
	CFA_RETURN_IN_REGISTER = 32,
	CFA_HANDED_OVER = 48,
};

/* Values of unwind_rule.frame_pointer. */
enum {
	FRAME_POINTER_SAME,
	FRAME_POINTER_AT_CFA,
	FRAME_POINTER_AT_FRAME_POINTER,
	FRAME_POINTER_LOST,
};

struct unwind_rule {
	u8 cfa;
	u8 frame_pointer;
	s16 frame_pointer_offset;
	s32 cfa_offset;
};

#define UNWIND_RULES (1 << 16)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNWIND_RULES);
	__type(key, u32);
	__type(value, struct unwind_rule);
} unwind_rules SEC(".maps");

#define SHARD_ROWS (1 << 18)

/* Row: the low 16 bits of the address << 16 | the number of the rule. */
struct unwind_rows {
	u32 rows[SHARD_ROWS];
};

USER_SPACE_KNOWS(struct, unwind_rows);

struct unwind_shard {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct unwind_rows));
};

#define UNWIND_SHARDS 1024

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNWIND_SHARDS);
	__type(key, u32);
	__array(values, struct unwind_shard);
} unwind_shards SEC(".maps");

/* Place of the rows for 64 KiB of addresses. */
struct unwind_page {
	u16 shard;
	u16 count;
	u32 first;
};

/* User space sets the capacity of this map and of unwind_mappings. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct unwind_page);
} unwind_pages SEC(".maps");

/* Executable mapping of a process. */
struct unwind_mapping {
	u64 start;
	u64 end;
	/* Difference between an address in memory and its address in the file's pages. */
	u64 bias;
	u32 first_page;
	/* 0 if the mapping has no table, so that frame pointers unwind its code. */
	u32 page_count;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct unwind_mapping);
} unwind_mappings SEC(".maps");

struct unwind_process {
	/* process_instance() to which the mappings belong. */
	u64 instance;
	/* Number of mappings << 32 | index of the first; 0 if there are none. */
	u64 mappings;
	/* Number of mapped pages of code when the mappings were last used. */
	u64 code_pages;
	/* Number that no other set of mappings ever had. */
	u64 generation;
	/* Runtimes of languages in the process, without gaps. */
	struct language_runtime runtimes[PROCESS_RUNTIMES];
};

/* Processes with tables, by PID in the caller's PID namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct unwind_process);
} unwind_processes SEC(".maps");

/*
 * Numbers of steps that suffice for the maximum rows of a page and the maximum
 * mappings.
 */
#define ROW_SEARCH_STEPS 17
#define MAPPING_SEARCH_STEPS 20

/*
 * Returns all bits set if @one <= @other, else 0; neither may have its highest bit set.
 * Searches use it in place of a branch, because the verifier would follow both branches
 * at each step.
 */
static __always_inline u64 at_most(u64 one, u64 other)
{
	return (s64)(one - other - 1) >> 63;
}

/*
 * Returns the mapping of @address among the @count mappings from index @first on; NULL
 * if there is none.
 */
static __always_inline struct unwind_mapping *find_mapping(u32 first, u32 count,
							   u64 address)
{
	struct unwind_mapping *mapping;
	u32 low = first;

	if (!count)
		return NULL;
	/* Finds the last mapping that does not start above the address. */
	for (u32 i = 0; i < MAPPING_SEARCH_STEPS; i++) {
		u32 half = count / 2, middle = low + half;

		if (!half)
			break;
		mapping = bpf_map_lookup_elem(&unwind_mappings, &middle);
		if (!mapping)
			return NULL;
		/*
		 * The shift clears the highest bit for at_most(). The dropped bit is 0
		 * in a start.
		 */
		low += half & at_most(mapping->start >> 1, address >> 1);
		count -= half;
	}
	mapping = bpf_map_lookup_elem(&unwind_mappings, &low);
	if (!mapping || address < mapping->start || address >= mapping->end)
		return NULL;
	return mapping;
}

/* Returns the rule at @offset in the pages from @first_page on; NULL if there is none. */
static __always_inline struct unwind_rule *find_rule(u32 first_page,
						     u32 page_count, u64 offset)
{
	struct unwind_page *page;
	struct unwind_rows *shard;
	u32 index, low, count, key, zero = 0;
	void *map;

	if (offset >> 16 >= page_count)
		return NULL;
	index = first_page + (u32)(offset >> 16);
	page = bpf_map_lookup_elem(&unwind_pages, &index);
	if (!page || !page->count)
		return NULL;
	index = page->shard;
	map = bpf_map_lookup_elem(&unwind_shards, &index);
	if (!map)
		return NULL;
	shard = bpf_map_lookup_elem(map, &zero);
	if (!shard)
		return NULL;

	/*
	 * Finds the last row that is not above the address. The first row never is
	 * above it.
	 */
	key = (u32)offset << 16 | 0xffff;
	low = page->first;
	count = page->count;
	for (u32 i = 0; i < ROW_SEARCH_STEPS; i++) {
		u32 half = count / 2, middle = low + half;

		if (!half)
			break;
		middle &= SHARD_ROWS - 1;
		low += half & at_most(shard->rows[middle], key);
		count -= half;
	}
	index = shard->rows[low & (SHARD_ROWS - 1)] & 0xffff;
	return bpf_map_lookup_elem(&unwind_rules, &index);
}

#endif
