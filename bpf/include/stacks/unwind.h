/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The walk along a user stack: by the tables where there are any, by frame
 * pointers through code that has none. shared/unwind/src/walk.rs is the same
 * walk in user space, and must stay so.
 */
#ifndef SYSTEMSCOPE_UNWIND_H
#define SYSTEMSCOPE_UNWIND_H

#include "events.h"
#include "frames.h"
#include "languages/languages.h"
#include "stacks/unwind_cache.h"
#include "task.h"
#include "stacks/unwind_tables.h"
#include "stacks/uretprobes.h"
#include "stubs.h"
#include "stacks/user_memory.h"

/* How a walk ended; the order is that of `End` in shared/unwind. */
enum walk_end {
	/* It goes on. */
	WALK_GOES_ON,
	/* At the first function of the thread. */
	WALK_REACHED_ROOT,
	/* An address is in no mapping that is known. */
	WALK_NO_MAPPING,
	/* The stack could not be read. */
	WALK_READ_FAILED,
	/* There are more frames than are kept. */
	WALK_TOO_DEEP,
	/* Code without a rule, and with no frame pointer to follow. */
	WALK_NO_RULE,
	/* 32-bit code, whose stacks are not walked. */
	WALK_32_BIT,
	/* Walked by the kernel's helper, which does not say. */
	WALK_NOT_KNOWN,
	/* Added to the others: a frame was found by its frame pointer. */
	WALK_BY_FRAME_POINTER = 0x100,
};

USER_SPACE_KNOWS(enum, walk_end);

enum call_graph {
	CALL_GRAPH_AUTO,
	CALL_GRAPH_FP,
	CALL_GRAPH_DWARF,
};

const volatile enum call_graph call_graph = CALL_GRAPH_AUTO;
/* How many frames of a stack are walked, and how many of an interpreter. */
const volatile u32 max_stack = STACK_DEPTH;

/* A walk in progress. */
struct walk {
	u64 ip;
	u64 sp;
	u64 bp;
	/* All of the user registers, which are known at the leaf only. */
	struct pt_regs registers;
	bool at_leaf;
	/* The ip is where the code was interrupted, not where it will return. */
	bool ip_is_exact;
	bool by_frame_pointer;
	u32 depth;
	/* Where the process's mappings are. */
	u32 first_mapping;
	u32 mapping_count;
	/* The mapping that the last address was in. */
	struct unwind_mapping mapping;
	/* Code of a stub. The verifier allows all functions of a walk 512 bytes of stack. */
	u64 code[2];
	/* Address to which uretprobes make functions return, or 0. */
	u64 trampoline;
	struct walk_notes notes;
};

/*
 * Room for one stack under construction per CPU and context: scheduler hooks
 * and samples run one at a time on a CPU; a thread's return can be interrupted by
 * a wake-up, and a task iterator preempted by all of them: these have room of
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
	/* The CFA of each frame. */
	u64 cfas[STACK_DEPTH];
	/* The process's, as find_process() read them. */
	struct language_runtime runtimes[PROCESS_RUNTIMES];
	struct chain_walk chain;
};

/*
 * An index into the frames. Older verifiers lose sight of a comparison when
 * the compiler spills the value; this is done where it is used.
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

/* The same for the frames of a runtime. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_KINDS);
	__type(key, u32);
	__type(value, struct mixed_stack);
} mixed_stacks SEC(".maps");

/* And for what a function of a runtime is. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_KINDS);
	__type(key, u32);
	__type(value, struct interpreted_function);
} interpreted_functions SEC(".maps");

static __always_inline struct stack_scratch *scratch_room(u32 kind)
{
	u32 slot = kind;

	return bpf_map_lookup_elem(&stack_scratch, &slot);
}

static __always_inline struct mixed_stack *mixed_room(u32 kind)
{
	u32 slot = kind;

	return bpf_map_lookup_elem(&mixed_stacks, &slot);
}

/* Through a stub to its caller; WALK_NO_RULE if the code is none. */
static __always_inline enum walk_end step_through_stub(struct walk *walk)
{
	u64 *code = walk->code, sp = walk->sp, slot;
	struct stub_frame frame;

	if (!read_user(code, sizeof(walk->code), walk->ip) ||
	    !read_stub(code[0], code[1], &frame))
		return WALK_NO_RULE;
	note_word(&walk->notes, walk->ip, code[0]);
	note_word(&walk->notes, walk->ip + sizeof(u64), code[1]);
	slot = sp + frame.cfa_offset + RETURN_ADDRESS_AT_CFA;
	if (!read_user(&walk->ip, sizeof(walk->ip), slot))
		return WALK_READ_FAILED;
	note_word(&walk->notes, slot, walk->ip);
	if (frame.bp_offset >= 0) {
		walk->notes.bp_from = sp + frame.bp_offset;
		if (!read_user(&walk->bp, sizeof(walk->bp),
			       walk->notes.bp_from))
			return WALK_READ_FAILED;
	}
	walk->sp = sp + frame.cfa_offset;
	return WALK_GOES_ON;
}

/* Through code without a rule: the frame pointer's caller, then its own. */
static __always_inline enum walk_end step_by_frame_pointer(struct walk *walk)
{
	u64 frame[2];

	if (call_graph == CALL_GRAPH_DWARF)
		return WALK_NO_RULE;
	note_bp(&walk->notes, walk->bp);
	/* Where a compiler keeps frame pointers, the outermost one is 0. */
	if (!walk->bp && walk->by_frame_pointer)
		return WALK_REACHED_ROOT;
	walk->by_frame_pointer = true;
	if (walk->bp < walk->sp || walk->bp % sizeof(u64) ||
	    !read_user(frame, sizeof(frame), walk->bp))
		return WALK_NO_RULE;
	note_word(&walk->notes, walk->bp + sizeof(u64), frame[1]);
	walk->notes.bp_from = walk->bp;
	walk->sp = walk->bp + sizeof(frame);
	walk->bp = frame[0];
	walk->ip = frame[1];
	return WALK_GOES_ON;
}

static __always_inline enum walk_end leave_signal_frame(struct walk *walk,
							u64 registers)
{
	u64 ip, sp, bp;

	walk->notes.complete = false;
	if (!read_user(&ip, sizeof(ip), registers + SIGNAL_FRAME_IP) ||
	    !read_user(&sp, sizeof(sp), registers + SIGNAL_FRAME_SP) ||
	    !read_user(&bp, sizeof(bp), registers + SIGNAL_FRAME_BP))
		return WALK_READ_FAILED;
	if (HAS_LINK_REGISTER &&
	    !read_user(&walk->registers.REGS_LINK, sizeof(u64),
		       registers + SIGNAL_FRAME_LINK))
		return WALK_READ_FAILED;
	walk->ip = ip;
	walk->sp = sp;
	walk->bp = bp;
	walk->ip_is_exact = true;
	return WALK_GOES_ON;
}

/*
 * From one frame to its caller's, by @rule. @knows_link: the link register is as the
 * frame's function has it, which is the leaf or was interrupted by a signal.
 */
static __always_inline enum walk_end
step_by_rule(struct walk *walk, struct unwind_rule *rule, bool knows_link)
{
	struct walk_notes *notes = &walk->notes;
	s32 offset = rule->cfa_offset;
	u64 cfa, ip, saved, bp = walk->bp;
	bool ip_is_known = false;
	u64 words[2];
	u32 number;

	switch (rule->cfa) {
	case CFA_STACK_POINTER:
		cfa = walk->sp + offset;
		break;
	case CFA_FRAME_POINTER:
	case CFA_SWITCHED_STACK:
		note_bp(notes, bp);
		cfa = bp + offset;
		break;
	case CFA_PLT:
		cfa = cfa_in_plt(walk->sp, walk->ip, offset);
		break;
	case CFA_SIGNAL_FRAME:
		return leave_signal_frame(walk, walk->sp + offset);
	case CFA_WORD_AT_STACK_POINTER:
	case CFA_WORD_AT_FRAME_POINTER:
		saved = walk->sp;
		if (rule->cfa == CFA_WORD_AT_FRAME_POINTER) {
			note_bp(notes, bp);
			saved = bp;
		}
		saved += (s16)offset;
		if (!read_user(&cfa, sizeof(cfa), saved))
			return WALK_READ_FAILED;
		note_word(notes, saved, cfa);
		cfa += offset >> 16;
		break;
	case CFA_ROOT:
		return WALK_REACHED_ROOT;
	case CFA_CLONED:
		if (!walk->at_leaf)
			return WALK_NO_RULE;
		notes->complete = false;
		if (!walk->registers.REGS_RESULT)
			return WALK_REACHED_ROOT;
		cfa = walk->sp + offset;
		break;
	default:
		if (HAS_LINK_REGISTER && rule->cfa == CFA_LINK_REGISTER) {
			if (!knows_link)
				return WALK_NO_RULE;
			notes->complete = false;
			ip = walk->registers.REGS_LINK;
			ip_is_known = true;
			cfa = walk->sp + offset;
			break;
		}
		number = rule->cfa % 16;
		if (!walk->at_leaf || rule->cfa >= CFA_HANDED_OVER)
			return WALK_NO_RULE;
		notes->complete = false;
		cfa = dwarf_register(&walk->registers, number);
		if (rule->cfa < CFA_RETURN_IN_REGISTER) {
			cfa += offset;
		} else {
			ip = cfa;
			ip_is_known = true;
			cfa = walk->sp + offset;
		}
	}
	/* Frames lie ever higher; what turns back is broken or forged. */
	if (rule->cfa == CFA_SWITCHED_STACK)
		walk->sp = 0;
	if (cfa < walk->sp || (cfa == walk->sp && !ip_is_known))
		return WALK_NO_RULE;

	saved = cfa;
	if (rule->frame_pointer == FRAME_POINTER_AT_FRAME_POINTER) {
		note_bp(notes, bp);
		saved = bp;
	}
	saved += rule->frame_pointer_offset;
	if (rule->frame_pointer == FRAME_POINTER_LOST) {
		/* No frame is there: what needs it will say so. */
		bp = 1;
		notes->bp_from = BP_FROM_NOWHERE;
	} else if (rule->frame_pointer == FRAME_POINTER_SAME ||
		   saved < walk->sp) {
		/* What is below the stack pointer was popped again. */
	} else if (saved == cfa + 2 * RETURN_ADDRESS_AT_CFA && !ip_is_known) {
		/* Where most functions push it: both words at once. */
		if (!read_user(words, sizeof(words), saved))
			return WALK_READ_FAILED;
		bp = words[0];
		ip = words[1];
		ip_is_known = true;
		notes->bp_from = saved;
	} else if (read_user(&bp, sizeof(bp), saved)) {
		notes->bp_from = saved;
	} else {
		return WALK_READ_FAILED;
	}
	if (!ip_is_known &&
	    !read_user(&ip, sizeof(ip), cfa + RETURN_ADDRESS_AT_CFA))
		return WALK_READ_FAILED;
	note_word(notes, cfa + RETURN_ADDRESS_AT_CFA, ip);
	walk->ip = ip;
	walk->sp = cfa;
	walk->bp = bp;
	return WALK_GOES_ON;
}

/*
 * Notes the frame that the walk in the room of @kind is at, and goes on to its
 * caller. Returns an enum walk_end.
 *
 * Global, and so with scalars only: the verifier looks at it once, and not
 * again for each of the frames.
 */
__noinline int unwind_frame(u32 kind)
{
	struct stack_scratch *room = scratch_room(kind);
	struct unwind_mapping *mapping;
	struct unwind_rule *rule;
	enum walk_end end;
	struct walk *walk;
	bool exact, leaf;
	u64 address;
	u32 depth;

	if (!room)
		return WALK_NO_MAPPING;
	walk = &room->walk;
	depth = walk->depth;
	exact = walk->ip_is_exact;
	leaf = !depth;
	if (walk->trampoline && walk->ip == walk->trampoline && !leaf) {
		walk->ip = original_return_address(walk->sp +
						   RETURN_ADDRESS_AT_CFA);
		walk->notes.complete = false;
		/* As it was: it is in no mapping. */
		if (!walk->ip)
			walk->ip = walk->trampoline;
	}
	if (!walk->ip)
		return WALK_REACHED_ROOT;
	if (depth >= max_stack)
		return WALK_TOO_DEEP;
	/* Frames are return addresses: what looks them up subtracts one. */
	room->event.frames[frame_index(depth)] = walk->ip + (exact && !leaf);
	walk->depth = depth + 1;

	/* A call may be the last instruction of its function. */
	address = walk->ip - !exact;
	if (address - walk->mapping.start >=
	    walk->mapping.end - walk->mapping.start) {
		mapping = find_mapping(walk->first_mapping, walk->mapping_count,
				       address);
		if (!mapping)
			return WALK_NO_MAPPING;
		walk->mapping = *mapping;
	}
	walk->ip_is_exact = false;
	rule = find_rule(walk->mapping.first_page, walk->mapping.page_count,
			 address - walk->mapping.bias);
	if (rule && rule->cfa != CFA_NONE) {
		end = step_by_rule(walk, rule,
				   HAS_LINK_REGISTER && (leaf || exact));
	} else {
		end = step_through_stub(walk);
		if (end == WALK_NO_RULE)
			end = step_by_frame_pointer(walk);
	}
	if (walk->ip_is_exact && !leaf)
		/* The trampoline was not called: it has no call before it. */
		room->event.frames[frame_index(depth)] = address + 2;
	walk->at_leaf = false;
	room->cfas[frame_index(depth)] = walk->sp;
	return end;
}

/*
 * How many frames are gone through at once: a loop in a loop is less work for the
 * verifier than one that is as long as both.
 */
#define FRAMES_AT_ONCE 32

/* Some frames, as unwind_frame() does one. */
__noinline int unwind_frames(u32 kind)
{
	int end = WALK_GOES_ON;

	for (u32 i = 0; i < FRAMES_AT_ONCE; i++) {
		end = unwind_frame(kind);
		if (end != WALK_GOES_ON)
			break;
	}
	return end;
}

/*
 * Does the whole walk that is prepared in @room, which is that of @kind. Returns an enum
 * walk_end, with WALK_BY_FRAME_POINTER. Inline: a function takes 32 bytes at least of
 * the 512 bytes of stack that all functions of a walk may use.
 */
static __always_inline int unwind_stack(struct stack_scratch *room, u32 kind)
{
	int end = WALK_NO_MAPPING;

	for (u32 i = 0; i <= STACK_DEPTH / FRAMES_AT_ONCE; i++) {
		end = unwind_frames(kind);
		if (end != WALK_GOES_ON)
			break;
	}
	if (room->walk.by_frame_pointer)
		end |= WALK_BY_FRAME_POINTER;
	return end;
}

/* The same of a runtime's. */
#define CHAIN_FRAMES_AT_ONCE 8

/* Notes some frames of a runtime, as unwind_frame() does one. Returns an enum chain_end. */
__noinline int walk_chain_frames(u32 kind)
{
	struct stack_scratch *room = scratch_room(kind);
	struct mixed_stack *stack = mixed_room(kind);
	struct language_layout *layout;
	int end = CHAIN_NO_THREAD;

	if (!room || !stack)
		return end;
	layout = find_layout(room->chain.layout);
	if (!layout)
		return end;
	for (u32 i = 0; i < CHAIN_FRAMES_AT_ONCE; i++) {
		if (stack->count >= max_stack)
			return CHAIN_TOO_DEEP;
		end = step_chain(&room->chain, layout, stack);
		if (end != CHAIN_GOES_ON)
			break;
	}
	return end;
}

/*
 * Goes to the innermost frame that the process's runtime of @index keeps of the current
 * thread, whose pthread_self() is @self, in the room of @kind. Returns an enum chain_end.
 */
__noinline int start_runtime(u32 kind, u32 index, u64 self)
{
	struct stack_scratch *room = scratch_room(kind);
	struct language_runtime *runtime;
	struct language_layout *layout;
	struct chain_walk *walk;

	if (!room)
		return CHAIN_NO_THREAD;
	walk = &room->chain;
	barrier_var(index);
	runtime = &room->runtimes[index & (PROCESS_RUNTIMES - 1)];
	walk->language = runtime->language;
	walk->layout = runtime->layout;
	walk->base = runtime->base;
	layout = find_layout(walk->layout);
	return layout ? start_chain(walk, layout, self) : CHAIN_NO_THREAD;
}

/*
 * Walks the frames that a runtime keeps of the current thread, whose pthread_self() is
 * @self, in the room of @kind.
 */
__noinline int walk_chain(u32 kind, u64 self)
{
	struct stack_scratch *room = scratch_room(kind);
	struct mixed_stack *stack = mixed_room(kind);
	int end = CHAIN_NO_THREAD;

	if (!room || !stack)
		return end;
	stack->count = 0;
	for (u32 i = 0; i < PROCESS_RUNTIMES; i++) {
		end = start_runtime(kind, i, self);
		if (end == CHAIN_GOES_ON)
			break;
	}
	if (end != CHAIN_GOES_ON)
		return end;
	for (u32 i = 0; i <= CHAIN_DEPTH / CHAIN_FRAMES_AT_ONCE; i++) {
		end = walk_chain_frames(kind);
		if (end != CHAIN_GOES_ON)
			break;
	}
	stack->end = end;
	/* 0 stands for none. */
	room->chain.hash = hash_word(room->chain.hash, end) | 1;
	return end;
}

#endif
