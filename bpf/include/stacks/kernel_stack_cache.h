/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Cache of unwound kernel stacks. Threads wait at the same few places over and over.
 * The size of each frame leads the unwinder from a return address to the next return
 * address. The compiler determines these sizes. Two stacks are therefore the same if
 * they have the same return addresses at the same offsets from the saved stack pointer.
 *
 * CONFIG_RANDOMIZE_KSTACK_OFFSET gives one frame another size at each system call: the
 * frame of the function that the entry code calls. Only the entry code calls that
 * function. The cache therefore compares the return address into the entry code at
 * another place, right below the user registers.
 *
 * The kernel's helper returns the return addresses, but not their offsets. The cache
 * therefore notes all words that may be return addresses:
 *
 * - words anywhere that are equal to a return address from the helper;
 * - words that differ by at most SCHEDULER_CODE bytes from the first return address,
 *   which is in __schedule(). The helper leaves out functions of the scheduler and of
 *   locks. The linker places these functions side by side.
 *
 * The cache may also note stale return addresses, which earlier calls have left on the
 * stack. Each stale word costs hits. Most stale words are above the last return
 * address, in the gap of random size. If a word there has changed when the stack is
 * unwound again, it is no return address, and the cache drops it.
 *
 * The cache refuses a stack on which an interrupt stopped kernel code. On such a stack
 * the processor, and not the compiler, determines the place of the interrupted
 * function's frame.
 */
#ifndef SYSTEMSCOPE_KERNEL_STACK_CACHE_H
#define SYSTEMSCOPE_KERNEL_STACK_CACHE_H

#include "events.h"
#include "kernel_stack.h"
#include "stacks/walk.h"
#include "task.h"

#define KERNEL_STACK_SETS 64
#define KERNEL_STACK_WAYS 4
#define CACHED_KERNEL_STACKS (KERNEL_STACK_SETS * KERNEL_STACK_WAYS)
#define CACHED_KERNEL_WORDS 64

struct cached_kernel_stack {
	/* The stack's ID; 0 if the entry is empty. */
	u64 id;
	/* Return address into the entry code. */
	u64 root;
	u32 word_count;
	u32 unused;
	/* Offsets of the words, in words from the saved stack pointer, ascending. */
	u16 offsets[CACHED_KERNEL_WORDS];
	u64 words[CACHED_KERNEL_WORDS];
};

/*
 * Set-associative cache of kernel stacks. Each CPU writes only its own entries, and no
 * program preempts the write.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CACHED_KERNEL_STACKS);
	__type(key, u32);
	__type(value, struct cached_kernel_stack);
} kernel_stack_cache SEC(".maps");

/* Maximum words in use on a stack that is cached. */
#define SAVED_STACK_WORDS 512
#define RETURN_ADDRESSES 256

/* Stack of a task that is not running, and the state of its caching. */
struct saved_stack {
	u64 stack_pointer;
	/* Address of the saved user registers, at the top. */
	u64 registers;
	/* Words from the stack pointer on, including most of the user registers. */
	u64 words[SAVED_STACK_WORDS + MAX_USER_REGISTERS];
	/*
	 * Offset in words of the return address into the entry code; 0 for a stack that
	 * must not be cached.
	 */
	u32 root;
	/* First slot of its set in kernel_stack_cache. */
	u32 set;
	/* Counter that selects the way to replace next. */
	u32 next_way;
	/* Number of the helper's return addresses. */
	u32 depth;
	/* Number of the helper's return addresses among the noted words so far. */
	u32 found;
	u32 noted;
	/* Number of noted words up to the last return address; 0 before that address. */
	u32 complete;
	u32 is_refused;
	/*
	 * Set of the helper's return addresses, each at the index of its lowest bits:
	 * see may_be_return_address().
	 */
	u64 addresses[RETURN_ADDRESSES];
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
 * Reads the stack at @stack->stack_pointer. Returns whether the stack may be cached.
 * The used part must have at most SAVED_STACK_WORDS words, and more words than the
 * stack of a task that has never run.
 */
static __always_inline bool read_saved_stack(struct saved_stack *stack)
{
	u64 used = stack->registers - stack->stack_pointer;
	u32 bytes;

	stack->root = 0;
	if (used > SAVED_STACK_WORDS * sizeof(u64) ||
	    used <= (SWITCH_RETURN_ADDRESS + 1) * sizeof(u64))
		return false;
	bytes = used + MAX_USER_REGISTERS * sizeof(u64);
	/* The barrier keeps the comparison visible for the verifier. */
	barrier_var(bytes);
	if (bytes > sizeof(stack->words) ||
	    bpf_probe_read_kernel(stack->words, bytes,
				  (void *)stack->stack_pointer))
		return false;
	stack->root = used / sizeof(u64) - 1;
	return true;
}

/*
 * Returns a value that differs between most stacks. In a system call, the value is the
 * system call's number. Outside of system calls, the used size of the stack is not
 * random, and the value follows from this size.
 */
static __always_inline u64 kind_of_stack(struct saved_stack *stack)
{
	u32 registers = saved_index(stack->root) + 1;
	u64 number = stack->words[registers + SYSTEM_CALL_REGISTER];

	if (!stack->words[registers + IP_REGISTER] || number == -1ULL)
		number = (u64)stack->root << 32;
	return number;
}

/* Returns the ID of the stack in saved_stacks, or 0 if the cache does not have it. */
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
 * Returns the ID of the kernel stack on which @task was switched out, or 0 if the cache
 * does not have it.
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

/*
 * Mark of an index that two addresses of the set share. The set stores neither address,
 * so any word with this index may be in the set.
 */
#define ANY_ADDRESS 1ULL

static __always_inline void add_return_address(struct saved_stack *stack,
					       u64 address)
{
	u64 *slot = &stack->addresses[address % RETURN_ADDRESSES];

	*slot = *slot && *slot != address ? ANY_ADDRESS : address;
}

#define SET_AT_ONCE 8

/*
 * Adds at most SET_AT_ONCE frames of the helper, from @first on, to the set of return
 * addresses. Removes them if @is_present is false. The function is global to save the
 * verifier work: see unwind_frame().
 */
__noinline int set_return_addresses(u32 first, u32 is_present)
{
	struct stack_scratch *scratch = find_stack_scratch(SCRATCH_HOOK);
	struct saved_stack *stack = find_saved_stack();

	if (!scratch || !stack)
		return 0;
	for (u32 i = 0; i < SET_AT_ONCE; i++) {
		u64 frame = scratch->event.frames[frame_index(first + i)];

		if (first + i >= stack->depth)
			break;
		if (is_present)
			add_return_address(stack, frame);
		else
			stack->addresses[frame % RETURN_ADDRESSES] = 0;
	}
	return 0;
}

static __always_inline bool may_be_return_address(struct saved_stack *stack,
						  u64 word)
{
	u64 found = stack->addresses[word % RETURN_ADDRESSES];

	return found && (found == word || found == ANY_ADDRESS);
}

/* Maximum distance in bytes between functions of the scheduler and of locks. */
#define SCHEDULER_CODE (128ULL << 10)

static __always_inline bool may_be_scheduler(struct saved_stack *stack,
					     u64 word)
{
	u64 schedule = stack->words[SWITCH_RETURN_ADDRESS];

	return word - (schedule - SCHEDULER_CODE) < 2 * SCHEDULER_CODE;
}

/*
 * Counts a noted word. If @word is the helper's next return address, counts that as
 * found. The root is not among these return addresses.
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
 * Examines at most NOTED_AT_ONCE words from @first on, and notes in @slot the words
 * that may be return addresses. The function is global to save the verifier work: see
 * unwind_frame().
 */
__noinline int note_return_addresses(u32 slot, u32 first)
{
	struct cached_kernel_stack *cached = find_cached_kernel_stack(slot);
	struct stack_scratch *scratch = find_stack_scratch(SCRATCH_HOOK);
	struct saved_stack *stack = find_saved_stack();

	if (!cached || !stack || !scratch)
		return 0;
	for (u32 i = 0; i < NOTED_AT_ONCE; i++) {
		u32 offset = first + i;
		u64 word;

		if (offset >= stack->root || stack->is_refused)
			break;
		offset = saved_index(offset);
		word = stack->words[offset];
		/*
		 * __schedule() never calls itself, so another word with its return
		 * address is stale.
		 */
		if (offset != SWITCH_RETURN_ADDRESS &&
		    word == stack->words[SWITCH_RETURN_ADDRESS])
			continue;
		if (!may_be_return_address(stack, word) &&
		    !may_be_scheduler(stack, word))
			continue;
		if (stack->noted >= CACHED_KERNEL_WORDS ||
		    may_be_saved_ip(stack->words, offset)) {
			stack->is_refused = true;
			break;
		}
		cached->offsets[noted_index(stack->noted)] = offset;
		cached->words[noted_index(stack->noted)] = word;
		follow(stack, &scratch->event, word);
	}
	return 0;
}

#define KEPT_AT_ONCE 8

/*
 * Handles at most KEPT_AT_ONCE words in @slot, from @first on, for
 * keep_return_addresses(). Returns whether the slot holds another stack.
 */
__noinline int keep_some_addresses(u32 slot, u32 first)
{
	struct cached_kernel_stack *cached = find_cached_kernel_stack(slot);
	struct stack_scratch *scratch = find_stack_scratch(SCRATCH_HOOK);
	struct saved_stack *stack = find_saved_stack();

	if (!cached || !stack || !scratch)
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
		follow(stack, &scratch->event, word);
	}
	return false;
}

/*
 * Updates the stack in @slot after another unwind of the same stack. If all words up to
 * the last return address are unchanged, drops the changed words behind it. Returns
 * whether @slot then has the words of the stack in saved_stacks.
 *
 * The unchanged words may be stale, and the stack's own return addresses may lie behind
 * them. Such return addresses have changed only if the two stacks differ in functions
 * that the helper leaves out. In that case one of the two stacks has a function of the
 * scheduler at the first difference.
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
 * Caches the stack in saved_stacks under @id. Its @depth frames, from an unwind, are in
 * the scratch of SCRATCH_HOOK.
 */
__noinline int cache_kernel_stack(u64 id, u32 depth)
{
	struct stack_scratch *scratch = find_stack_scratch(SCRATCH_HOOK);
	struct saved_stack *stack = find_saved_stack();
	struct cached_kernel_stack *cached;
	u64 root;
	u32 slot;

	if (!stack || !scratch || !stack->root || depth < 2 ||
	    depth >= KERNEL_STACK_DEPTH)
		return 0;
	root = stack->words[saved_index(stack->root)];
	if (scratch->event.frames[frame_index(depth - 1)] != root)
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
	for (u32 first = 0; first < KERNEL_STACK_DEPTH; first += SET_AT_ONCE)
		set_return_addresses(first, true);
	begin_to_follow(stack);
	for (u32 first = SWITCH_RETURN_ADDRESS; first < SAVED_STACK_WORDS;
	     first += NOTED_AT_ONCE) {
		if (first >= stack->root)
			break;
		note_return_addresses(slot, first);
	}
	for (u32 first = 0; first < KERNEL_STACK_DEPTH; first += SET_AT_ONCE)
		set_return_addresses(first, false);
	if (stack->is_refused || !stack->complete)
		return 0;
	cached->word_count = stack->complete;
	cached->root = root;
	cached->id = id;
	return 0;
}

#endif
