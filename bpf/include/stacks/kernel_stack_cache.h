/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Kernel stacks that were unwound before. Threads wait at the same few places
 * over and over. The unwinder goes from each return address to the next one by
 * how large the frame is there, which the compiler has settled. So the stack of
 * a thread that left its CPU follows from its first return address, and from
 * those that lie where the ones of another stack lay: if all of these are the
 * same, counted from the saved stack pointer, so are the two stacks.
 *
 * One frame has another size at each system call, by
 * CONFIG_RANDOMIZE_KSTACK_OFFSET: that of the function that the code at the
 * kernel's entry calls. Nothing else calls that function, so what is left is
 * the one return address into the entry code, which lies below the user
 * registers.
 *
 * The kernel's helper says which return addresses there are, and not where. So
 * all words that may be one of them are noted:
 *
 * - those that are equal to one that the helper tells, wherever they lie;
 * - those near the first one, which is in __schedule(): the helper leaves out
 *   functions of the scheduler, and of locks, which are linked side by side.
 *
 * More may be noted than there are return addresses, as old ones lie between
 * them. That costs hits. Most are above the last one, where the random size
 * leaves room: when such a stack is unwound again, what has changed there is no
 * return address, and is noted no longer.
 *
 * Not cached are stacks on which the kernel itself was interrupted: where the
 * interrupted code's frame is the processor has settled, and saved.
 */
#ifndef SYSTEMSCOPE_KERNEL_STACK_CACHE_H
#define SYSTEMSCOPE_KERNEL_STACK_CACHE_H

#include "events.h"
#include "kernel_stack.h"
#include "stacks/unwind.h"
#include "task.h"

#define KERNEL_STACK_SETS 64
#define KERNEL_STACK_WAYS 4
#define CACHED_KERNEL_STACKS (KERNEL_STACK_SETS * KERNEL_STACK_WAYS)
#define CACHED_KERNEL_WORDS 64

struct cached_kernel_stack {
	/* The stack's ID; 0 while there is none. */
	u64 id;
	/* The return address into the entry code. */
	u64 root;
	u32 word_count;
	u32 unused;
	/* Where the words lie, in words from the saved stack pointer, ascending. */
	u16 offsets[CACHED_KERNEL_WORDS];
	u64 words[CACHED_KERNEL_WORDS];
};

/* Set-associative. Written by its CPU alone, which nothing preempts meanwhile. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CACHED_KERNEL_STACKS);
	__type(key, u32);
	__type(value, struct cached_kernel_stack);
} kernel_stack_cache SEC(".maps");

/* A stack of which more is in use is not cached. */
#define SAVED_STACK_WORDS 512
#define RETURN_ADDRESSES 256

/* The stack of a task that is not running, and what is to be noted of it. */
struct saved_stack {
	u64 stack_pointer;
	/* Where the user registers are saved, at the top. */
	u64 registers;
	/* All from the stack pointer on, with most of the user registers. */
	u64 words[SAVED_STACK_WORDS + MOST_USER_REGISTERS];
	/* The offset of the root; 0 of a stack that is not to be cached. */
	u32 root;
	/* The first slot of its set in kernel_stack_cache. */
	u32 set;
	/* Which way of the set is taken next. */
	u32 next_way;
	/* How many return addresses the helper told, and how many were found. */
	u32 depth;
	u32 found;
	u32 noted;
	/* How many were noted when the last return address was found. */
	u32 complete;
	u32 is_refused;
	/* What the helper told, each by its lowest bits: see may_be_told(). */
	u64 told[RETURN_ADDRESSES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct saved_stack);
} saved_stacks SEC(".maps");

static __always_inline struct saved_stack *find_saved_stack(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&saved_stacks, &zero);
}

static __always_inline struct cached_kernel_stack *
find_cached_kernel_stack(u32 slot)
{
	return bpf_map_lookup_elem(&kernel_stack_cache, &slot);
}

/* See frame_index(). */
static __always_inline u32 saved_index(u32 offset)
{
	asm volatile("%0 &= 511" : "+r"(offset));
	return offset;
}

static __always_inline u32 noted_index(u32 count)
{
	asm volatile("%0 &= 63" : "+r"(count));
	return count;
}

/*
 * Reads the stack that @stack is about. Returns whether it may be cached: more
 * of it is in use than what a task has that was never switched out.
 */
static __always_inline bool read_saved_stack(struct saved_stack *stack)
{
	u64 used = stack->registers - stack->stack_pointer;
	u32 bytes;

	stack->root = 0;
	if (used > SAVED_STACK_WORDS * sizeof(u64) ||
	    used <= (SWITCH_RETURN_ADDRESS + 1) * sizeof(u64))
		return false;
	bytes = used + MOST_USER_REGISTERS * sizeof(u64);
	/* So that the verifier sees the comparison that the compiler made. */
	barrier_var(bytes);
	if (bytes > sizeof(stack->words) ||
	    bpf_probe_read_kernel(stack->words, bytes,
				  (void *)stack->stack_pointer))
		return false;
	stack->root = used / sizeof(u64) - 1;
	return true;
}

/*
 * What tells most stacks apart: the number of the system call; of those that are
 * in none how much is in use, which is not random then.
 */
static __always_inline u64 kind_of_stack(struct saved_stack *stack)
{
	u32 registers = saved_index(stack->root) + 1;
	u64 number = stack->words[registers + SYSTEM_CALL_REGISTER];

	if (!stack->words[registers + IP_REGISTER] || number == -1ULL)
		number = (u64)stack->root << 32;
	return number;
}

/* The ID of the stack that saved_stacks is about, or 0 if that is not known. */
__noinline u64 find_saved_stacks_id(void)
{
	struct saved_stack *stack = find_saved_stack();
	u64 root;

	if (!stack || !read_saved_stack(stack))
		return 0;
	stack->set = hash_word(0, kind_of_stack(stack)) % KERNEL_STACK_SETS *
		     KERNEL_STACK_WAYS;
	root = stack->words[saved_index(stack->root)];
	for (u32 way = 0; way < KERNEL_STACK_WAYS; way++) {
		struct cached_kernel_stack *cached;
		u32 i;

		cached = find_cached_kernel_stack(stack->set + way);
		if (!cached || !cached->id || cached->root != root)
			continue;
		for (i = 0; i < CACHED_KERNEL_WORDS; i++) {
			if (i >= cached->word_count)
				return cached->id;
			if (stack->words[saved_index(cached->offsets[i])] !=
			    cached->words[i])
				break;
		}
		if (i == CACHED_KERNEL_WORDS)
			return cached->id;
	}
	return 0;
}

/*
 * The ID of the kernel stack on which @task was switched out, or 0 if that is
 * not known.
 */
static __always_inline u64 look_up_kernel_stack(struct task_struct *task)
{
	struct saved_stack *stack = find_saved_stack();

	if (!stack)
		return 0;
	stack->stack_pointer = task->SAVED_STACK_POINTER;
	stack->registers = (u64)user_regs(task);
	return find_saved_stacks_id();
}

/* Of two return addresses in one place none is known, and so all may be told. */
#define ALL_MAY_BE_TOLD 1ULL

static __always_inline void tell(struct saved_stack *stack, u64 address)
{
	u64 *told = &stack->told[address % RETURN_ADDRESSES];

	*told = *told && *told != address ? ALL_MAY_BE_TOLD : address;
}

#define TOLD_AT_ONCE 8

/*
 * Some frames that the helper told, from @first on, are told from here on, or no
 * longer. Global, for the verifier's sake: see unwind_frame().
 */
__noinline int tell_frames(u32 first, u32 are_told)
{
	struct stack_scratch *room = scratch_room(SCRATCH_HOOK);
	struct saved_stack *stack = find_saved_stack();

	if (!room || !stack)
		return 0;
	for (u32 i = 0; i < TOLD_AT_ONCE; i++) {
		u64 frame = room->event.frames[frame_index(first + i)];

		if (first + i >= stack->depth)
			break;
		if (are_told)
			tell(stack, frame);
		else
			stack->told[frame % RETURN_ADDRESSES] = 0;
	}
	return 0;
}

static __always_inline bool may_be_told(struct saved_stack *stack, u64 word)
{
	u64 told = stack->told[word % RETURN_ADDRESSES];

	return told && (told == word || told == ALL_MAY_BE_TOLD);
}

/* How far functions of the scheduler and of locks are from each other at most. */
#define SCHEDULER_CODE (128ULL << 10)

static __always_inline bool may_be_scheduler(struct saved_stack *stack,
					     u64 word)
{
	u64 schedule = stack->words[SWITCH_RETURN_ADDRESS];

	return word - (schedule - SCHEDULER_CODE) < 2 * SCHEDULER_CODE;
}

/*
 * Another word has been noted: goes on to the next return address if @word is
 * the one that is looked for. The root is not among them.
 */
static __always_inline void follow(struct saved_stack *stack,
				   struct stack_event *event, u64 word)
{
	stack->noted++;
	if (stack->found + 1 < stack->depth &&
	    word == event->frames[frame_index(stack->found)])
		stack->found++;
	if (stack->found + 1 == stack->depth &&
	    word == event->frames[frame_index(stack->depth - 2)])
		stack->complete = stack->noted;
}

static __always_inline void begin_to_follow(struct saved_stack *stack)
{
	stack->found = 0;
	stack->noted = 0;
	stack->complete = 0;
	stack->is_refused = false;
}

#define NOTED_AT_ONCE 8

/*
 * Notes in @slot which of some words from @first on may be return addresses.
 * Global, for the verifier's sake: see unwind_frame().
 */
__noinline int note_return_addresses(u32 slot, u32 first)
{
	struct cached_kernel_stack *cached = find_cached_kernel_stack(slot);
	struct stack_scratch *room = scratch_room(SCRATCH_HOOK);
	struct saved_stack *stack = find_saved_stack();

	if (!cached || !stack || !room)
		return 0;
	for (u32 i = 0; i < NOTED_AT_ONCE; i++) {
		u32 offset = first + i;
		u64 word;

		if (offset >= stack->root || stack->is_refused)
			break;
		offset = saved_index(offset);
		word = stack->words[offset];
		/* __schedule() is never below itself. */
		if (offset != SWITCH_RETURN_ADDRESS &&
		    word == stack->words[SWITCH_RETURN_ADDRESS])
			continue;
		if (!may_be_told(stack, word) && !may_be_scheduler(stack, word))
			continue;
		if (stack->noted >= CACHED_KERNEL_WORDS ||
		    may_be_saved_ip(stack->words, offset)) {
			stack->is_refused = true;
			break;
		}
		cached->offsets[noted_index(stack->noted)] = offset;
		cached->words[noted_index(stack->noted)] = word;
		follow(stack, &room->event, word);
	}
	return 0;
}

#define KEPT_AT_ONCE 8

/*
 * Keeps some of the words that are cached in @slot, from @first on, as
 * keep_return_addresses() has it. Returns whether another stack is there.
 */
__noinline int keep_some_addresses(u32 slot, u32 first)
{
	struct cached_kernel_stack *cached = find_cached_kernel_stack(slot);
	struct stack_scratch *room = scratch_room(SCRATCH_HOOK);
	struct saved_stack *stack = find_saved_stack();

	if (!cached || !stack || !room)
		return true;
	for (u32 i = 0; i < KEPT_AT_ONCE; i++) {
		u32 at = first + i, kept = stack->noted, offset;
		u64 word, found;

		if (at >= cached->word_count)
			break;
		offset = cached->offsets[noted_index(at)];
		word = cached->words[noted_index(at)];
		found = stack->words[saved_index(offset)];
		if (found != word) {
			if (!stack->complete || may_be_scheduler(stack, word) ||
			    may_be_scheduler(stack, found)) {
				if (kept != at)
					cached->id = 0;
				return true;
			}
			continue;
		}
		cached->offsets[noted_index(kept)] = offset;
		cached->words[noted_index(kept)] = word;
		follow(stack, &room->event, word);
	}
	return false;
}

/*
 * The stack that is cached in @slot was unwound again. Where all are the same that
 * were noted until every return address was found, what has changed behind them
 * is forgotten. Returns whether that is so, and what was cached still is.
 *
 * What was found may have been old return addresses, and the stack's own may lie
 * behind them. These have changed only if the two stacks differ in functions that
 * the helper leaves out: one of the scheduler is in one of them then, where they
 * first differ.
 */
__noinline int keep_return_addresses(u32 slot)
{
	struct cached_kernel_stack *cached = find_cached_kernel_stack(slot);
	struct saved_stack *stack = find_saved_stack();

	if (!cached || !stack)
		return false;
	begin_to_follow(stack);
	for (u32 first = 0; first < CACHED_KERNEL_WORDS; first += KEPT_AT_ONCE)
		if (keep_some_addresses(slot, first))
			return false;
	cached->word_count = stack->complete;
	if (!stack->complete)
		cached->id = 0;
	return stack->complete;
}

/*
 * The stack that saved_stacks is about was unwound: it has @depth frames, in the
 * room of hooks, and is @id.
 */
__noinline int cache_kernel_stack(u64 id, u32 depth)
{
	struct stack_scratch *room = scratch_room(SCRATCH_HOOK);
	struct saved_stack *stack = find_saved_stack();
	struct cached_kernel_stack *cached;
	u64 root;
	u32 slot;

	if (!stack || !room || !stack->root || depth < 2 ||
	    depth >= KERNEL_STACK_DEPTH)
		return 0;
	root = stack->words[saved_index(stack->root)];
	if (room->event.frames[frame_index(depth - 1)] != root)
		return 0;
	stack->depth = depth;
	for (u32 way = 0; way < KERNEL_STACK_WAYS; way++) {
		slot = stack->set + way;
		cached = find_cached_kernel_stack(slot);
		if (cached && cached->id == id && keep_return_addresses(slot))
			return 0;
	}
	slot = stack->set + stack->next_way++ % KERNEL_STACK_WAYS;
	cached = find_cached_kernel_stack(slot);
	if (!cached)
		return 0;
	cached->id = 0;
	for (u32 first = 0; first < KERNEL_STACK_DEPTH; first += TOLD_AT_ONCE)
		tell_frames(first, true);
	begin_to_follow(stack);
	for (u32 first = SWITCH_RETURN_ADDRESS; first < SAVED_STACK_WORDS;
	     first += NOTED_AT_ONCE) {
		if (first >= stack->root)
			break;
		note_return_addresses(slot, first);
	}
	for (u32 first = 0; first < KERNEL_STACK_DEPTH; first += TOLD_AT_ONCE)
		tell_frames(first, false);
	if (stack->is_refused || !stack->complete)
		return 0;
	cached->word_count = stack->complete;
	cached->root = root;
	cached->id = id;
	return 0;
}

#endif
