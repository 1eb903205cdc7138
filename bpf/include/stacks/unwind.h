/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Unwinds user stacks by unwind tables, and by frame pointers through code without a
 * table. shared/unwind/src/walk.rs has the same algorithm for user space. Change both
 * together.
 */
#ifndef SYSTEMSCOPE_UNWIND_H
#define SYSTEMSCOPE_UNWIND_H

#include "languages/languages.h"
#include "task.h"
#include "stacks/unwind_tables.h"
#include "stacks/uretprobes.h"
#include "stubs.h"
#include "stacks/user_memory.h"
#include "stacks/walk.h"

/* Steps through a stub to its caller. Returns WALK_NO_RULE if the code is no stub. */
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

/* Steps through code without a rule by the frame pointer. */
static __always_inline enum walk_end step_by_frame_pointer(struct walk *walk)
{
	u64 frame[2];

	if (call_graph == CALL_GRAPH_DWARF)
		return WALK_NO_RULE;
	note_bp(&walk->notes, walk->bp);
	/* In code with frame pointers, the frame pointer of the first function is 0. */
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
 * Steps from a frame to the caller's frame by @rule. @knows_link: true if the link
 * register has the value of this frame, as in the leaf or in a function that a signal
 * interrupted.
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
	/*
	 * A caller's frame has a higher address unless the stack was switched. Any
	 * other stack is broken or forged.
	 */
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
		/*
		 * No stack is at address 1, so a later step by the frame pointer fails.
		 */
		bp = 1;
		notes->bp_from = BP_FROM_NOWHERE;
	} else if (rule->frame_pointer == FRAME_POINTER_SAME ||
		   saved < walk->sp) {
		/*
		 * The function has not saved the frame pointer, or has already restored
		 * it.
		 */
	} else if (saved == cfa + 2 * RETURN_ADDRESS_AT_CFA && !ip_is_known) {
		/*
		 * Most functions push the frame pointer right below the return address,
		 * so one read gets both words.
		 */
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
 * Stores the current frame of the unwind in the scratch of @kind, and steps to its
 * caller. Returns an enum walk_end.
 *
 * The function is global and takes scalars, so the verifier checks it once instead of
 * once per frame.
 */
__noinline int unwind_frame(u32 kind)
{
	struct stack_scratch *scratch = find_stack_scratch(kind);
	struct unwind_mapping *mapping;
	struct unwind_rule *rule;
	enum walk_end end;
	struct walk *walk;
	bool exact, leaf;
	u64 address;
	u32 depth;

	if (!scratch)
		return WALK_NO_MAPPING;
	walk = &scratch->walk;
	depth = walk->depth;
	exact = walk->ip_is_exact;
	leaf = !depth;
	if (walk->trampoline && walk->ip == walk->trampoline && !leaf) {
		walk->ip = original_return_address(walk->sp +
						   RETURN_ADDRESS_AT_CFA);
		walk->notes.complete = false;
		/* The trampoline is in no mapping, so the unwind ends there. */
		if (!walk->ip)
			walk->ip = walk->trampoline;
	}
	if (!walk->ip)
		return WALK_REACHED_ROOT;
	if (depth >= max_stack)
		return WALK_TOO_DEEP;
	/*
	 * Lookups subtract 1 from every frame but the leaf, so an exact ip is stored
	 * plus 1.
	 */
	scratch->event.frames[frame_index(depth)] = walk->ip + (exact && !leaf);
	walk->depth = depth + 1;

	/*
	 * A call may end its function, so the unwind looks up a return address minus 1.
	 */
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
		/*
		 * This frame is the signal trampoline. No call precedes its address, so
		 * the address is exact. Adding 2 undoes the subtraction above and the
		 * subtraction of later lookups.
		 */
		scratch->event.frames[frame_index(depth)] = address + 2;
	walk->at_leaf = false;
	scratch->cfas[frame_index(depth)] = walk->sp;
	return end;
}

/* Notes on what a step through generated code depends, for the cache of unwinds. */
static __always_inline void note_code_words(struct walk *walk,
					    struct code_frame *frame)
{
	if (frame->is_exact || frame->word_count > CODE_WORDS)
		walk->notes.complete = false;
	if (!walk->notes.complete)
		return;
	for (u32 i = 0; i < CODE_WORDS; i++) {
		if (i >= frame->word_count)
			break;
		note_word(&walk->notes, frame->words[i].address,
			  frame->words[i].value);
	}
	if (frame->uses_bp)
		note_bp(&walk->notes, walk->bp);
	if (frame->bp_from)
		walk->notes.bp_from = frame->bp_from;
}

/*
 * Notes the frame at which the unwind in the scratch of @kind is in generated code, and
 * steps to its caller. The native frames get one frame for all adjacent frames in generated
 * code. Returns an enum walk_end.
 */
__noinline int unwind_generated_frame(u32 kind)
{
	struct stack_scratch *scratch = find_stack_scratch(kind);
	struct mixed_stack *stack = find_mixed_scratch(kind);
	struct language_layout *layout;
	struct code_frame *frame;
	enum chain_end end;
	struct walk *walk;
	u64 ip, sp;
	u32 depth;

	if (!scratch || !stack)
		return WALK_NO_RULE;
	walk = &scratch->walk;
	frame = &scratch->chain.frame;
	depth = walk->depth;
	layout = find_layout(scratch->chain.layout);
	if (!layout || depth >= max_stack)
		return WALK_TOO_DEEP;
	ip = walk->ip;
	sp = walk->sp;
	frame->ip = ip;
	frame->sp = sp;
	frame->bp = walk->bp;
	frame->is_exact = walk->ip_is_exact;
	frame->uses_bp = false;
	frame->bp_from = 0;
	frame->word_count = 0;
	if (stack->count >= max_stack || stack->count >= CHAIN_DEPTH)
		end = CHAIN_TOO_DEEP;
	else
		end = unwind_code(&scratch->chain, layout, stack,
				  walk->at_leaf ? &walk->registers : NULL);
	/* A caller's frame has a higher address. A leaf may have no frame yet. */
	if ((end == CHAIN_GOES_ON || end == CHAIN_LEFT_CODE) &&
	    frame->sp < sp + !walk->at_leaf)
		end = CHAIN_BROKEN;
	walk->at_leaf = false;
	walk->ip_is_exact = false;
	if (end == CHAIN_GOES_ON || end == CHAIN_LEFT_CODE) {
		note_code_words(walk, frame);
		walk->ip = frame->ip;
		walk->sp = frame->sp;
		walk->bp = frame->bp;
		if (end == CHAIN_GOES_ON)
			return WALK_GOES_ON;
	} else {
		walk->notes.complete = false;
		stack->end = end;
		note_anchor(&scratch->chain, stack, sp);
		/* The frame contains at least its stack pointer. */
		walk->sp = sp + sizeof(u64);
	}
	scratch->event.frames[frame_index(depth)] = ip;
	scratch->cfas[frame_index(depth)] = walk->sp;
	walk->depth = depth + 1;
	return end == CHAIN_LEFT_CODE ? WALK_GOES_ON : WALK_NO_RULE;
}

/*
 * Maximum frames per inner loop. The verifier checks two nested loops faster than one
 * long loop.
 */
#define FRAMES_AT_ONCE 32

/* Unwinds at most FRAMES_AT_ONCE frames. Returns an enum walk_end. */
__noinline int unwind_frames(u32 kind)
{
	struct stack_scratch *scratch = find_stack_scratch(kind);
	int end = WALK_GOES_ON;

	if (!scratch)
		return WALK_NO_MAPPING;
	for (u32 i = 0; i < FRAMES_AT_ONCE; i++) {
		if (scratch->walk.ip - scratch->chain.code_start <
		    scratch->chain.code_bytes)
			end = unwind_generated_frame(kind);
		else
			end = unwind_frame(kind);
		if (end != WALK_GOES_ON)
			break;
	}
	return end;
}

/* Inner loops that suffice for the native frames and the frames in generated code. */
#define FRAME_LOOPS ((STACK_DEPTH + CHAIN_DEPTH) / FRAMES_AT_ONCE)

/*
 * Runs the unwind that the caller prepared in @scratch, the scratch of @kind. Returns
 * an enum walk_end, with the flag WALK_BY_FRAME_POINTER if it applies. The function is
 * inline because all functions of an unwind together have 512 bytes of stack, and a
 * call takes at least 32 of them.
 */
static __always_inline int unwind_stack(struct stack_scratch *scratch, u32 kind)
{
	int end = WALK_NO_MAPPING;

	for (u32 i = 0; i <= FRAME_LOOPS; i++) {
		end = unwind_frames(kind);
		if (end != WALK_GOES_ON)
			break;
	}
	if (scratch->walk.by_frame_pointer)
		end |= WALK_BY_FRAME_POINTER;
	return end;
}

#endif
