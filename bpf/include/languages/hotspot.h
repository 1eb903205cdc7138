/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Unwinds the frames of Java in HotSpot. They lie on the native stack, in code that no
 * file describes: the interpreter, methods that a compiler made, and stubs. The code
 * cache has a block for each piece of code. The block tells the size of the frames. A
 * map of segments leads from an address to its block.
 *
 * shared/languages/src/hotspot/step.rs has the same algorithm for user space. Change
 * both together. layout.rs beside it makes the layout from the tables of the running
 * virtual machine.
 */
#ifndef SYSTEMSCOPE_HOTSPOT_H
#define SYSTEMSCOPE_HOTSPOT_H

#include "hotspot_code.h"
#include "languages/hotspot_layout.h"
#include "languages/language.h"

/* Position in a native method, which has no bytecode. */
#define HOTSPOT_NATIVE (-1)
/* In place of the address of a bytecode: the method has not begun. */
#define HOTSPOT_BEGINS 1

/* Unwind of a segment of frames in progress. */

/* Class of a method whose name was read in this walk. */
struct hotspot_class {
	/* Its pool of constants. */
	u64 constants;
	/* Hash of its name, which is not 0. */
	u64 hash;
};

/* Classes that are kept, and bits below those that tell their pools apart. */
#define HOTSPOT_CLASSES 8
#define HOTSPOT_CLASS_SHIFT 6

struct hotspot_walk {
	/* Address of the blob behind the block's header. */
	u64 blob;
	/* Words of the stack. */
	u64 words[HOTSPOT_STUB_WORDS];
	u64 pair[2];
	/* Pointer that was read. Locals would take stack, of which there is little. */
	u64 pointer;
	/* Part of the map of segments that was read. */
	u8 back;
	struct hotspot_code code;
	/* Code before a possible return address. */
	u64 call;
	/* Part of a ConstMethod, and space for a word at any 6-bit offset. */
	u8 constants[64 + sizeof(u64)];
	/* Beginning of the block, and space for a word at any 9-bit offset. */
	u8 block[512 + sizeof(u64)];
	struct hotspot_class classes[HOTSPOT_CLASSES];
	/* Class of a pool, its name, and the first word of the name. */
	u64 holder;
	u64 name;
	u64 symbol;
};

/*
 * Returns the word at @offset in the block. The mask is for older verifiers, which
 * forget comparisons.
 */
static __always_inline u64 block_word(struct hotspot_walk *walk, u32 offset)
{
	asm volatile("%0 &= 511" : "+r"(offset));
	return *(u64 *)(walk->block + offset);
}

/* Returns the address in the field at @offset of the block. */
static __always_inline u64 block_address(struct hotspot_walk *walk,
					 struct hotspot_layout *layout,
					 u32 offset)
{
	u64 word = block_word(walk, offset);

	return layout->flags & HOTSPOT_CODE_IS_OFFSET ?
		       walk->blob + (s64)(s32)word :
		       word;
}

static __always_inline bool in_code_cache(struct hotspot_layout *layout,
					  u64 address)
{
	return address - layout->code_start < layout->code_bytes;
}

static __always_inline bool in_interpreter(struct hotspot_layout *layout,
					   u64 address)
{
	return address - layout->interpreter_start < layout->interpreter_bytes;
}

/* Returns the address of the block that contains the code at @address; 0 if unknown. */
static __always_inline u64 find_block(struct hotspot_walk *walk,
				      struct hotspot_layout *layout,
				      u64 address)
{
	u64 low = 0, segments = 0, index;

#pragma unroll
	for (u32 i = 0; i < HOTSPOT_HEAPS; i++) {
		if (address < layout->heaps[i].low)
			break;
		low = layout->heaps[i].low;
		segments = layout->heaps[i].segments;
	}
	if (!low)
		return 0;
	index = (address - low) >> (layout->segment_shift & 63);
	for (u32 i = 0; i < HOTSPOT_HOPS; i++) {
		if (!read_user(&walk->back, sizeof(walk->back),
			       segments + index) ||
		    walk->back == 0xff)
			return 0;
		if (!walk->back)
			return low + (index << (layout->segment_shift & 63));
		index -= walk->back;
	}
	return 0;
}

/* Reads the beginning of the block that contains the code at @address. */
static __always_inline bool read_block(struct hotspot_walk *walk,
				       struct hotspot_layout *layout,
				       u64 address)
{
	u64 block = find_block(walk, layout, address);
	u32 bytes = layout->block_bytes;

	asm volatile("%0 &= 511" : "+r"(bytes));
	if (!block || !read_user(walk->block, bytes, block))
		return false;
	walk->blob = block + layout->block_header;
	return (u8)block_word(walk, layout->block_used) == 1;
}

/* Returns whether the block that was read is a compiled method. */
static __always_inline bool is_method(struct hotspot_walk *walk,
				      struct hotspot_layout *layout)
{
	u64 kind = block_word(walk, layout->kind) & layout->kind_mask;

	return kind == layout->compiled;
}

/*
 * Returns whether code returns to @address: it is in the interpreter, or behind a call.
 */
static __always_inline bool is_return_address(struct hotspot_walk *walk,
					      struct hotspot_layout *layout,
					      u64 address)
{
	if (!in_code_cache(layout, address))
		return false;
	if (in_interpreter(layout, address) ||
	    address == layout->call_stub_return)
		return true;
	if (!read_user(&walk->call, sizeof(walk->call),
		       address - HOTSPOT_CALL_BYTES))
		return false;
	return follows_call(walk->call);
}

/* Prepares an unwind. The frames are on the native stack. */
static __always_inline enum chain_end
hotspot_start(struct chain_walk *chain, struct language_layout *of_machine,
	      u64 self)
{
	struct hotspot_layout *layout =
		LAYOUT_OF(of_machine, struct hotspot_layout);
	struct hotspot_walk *walk = CHAIN_STATE(chain, struct hotspot_walk);

	for (u32 i = 0; i < HOTSPOT_CLASSES; i++)
		walk->classes[i].constants = 0;
	chain->code_start = layout->code_start;
	chain->code_bytes = layout->code_bytes;
	return CHAIN_ON_STACK;
}

static __always_inline bool read_words(struct hotspot_walk *walk, u64 address)
{
	return read_user(walk->words, sizeof(walk->words), address);
}

/* Steps to the caller whose return address is the word below @sp. */
static __always_inline enum chain_end return_to(struct code_frame *frame,
						u64 sp, u64 ip, u64 bp)
{
	frame->sp = sp;
	frame->ip = ip;
	frame->bp = bp;
	return CHAIN_GOES_ON;
}

/* Steps through a frame whose return address is at the stack pointer. */
static __always_inline enum chain_end return_at_top(struct hotspot_walk *walk,
						    struct code_frame *frame)
{
	if (!read_user(walk->words, sizeof(u64), frame->sp))
		return CHAIN_READ_FAILED;
	note_code_word(frame, frame->sp, walk->words[0]);
	return return_to(frame, frame->sp + sizeof(u64), walk->words[0],
			 frame->bp);
}

/* Steps through a frame with the saved frame pointer at @slot, the return address above. */
static __always_inline enum chain_end
return_above(struct hotspot_walk *walk, struct code_frame *frame, u64 slot)
{
	if (!read_user(walk->words, 2 * sizeof(u64), slot))
		return CHAIN_READ_FAILED;
	frame->bp_from = slot;
	note_code_word(frame, slot + sizeof(u64), walk->words[1]);
	return return_to(frame, slot + 2 * sizeof(u64), walk->words[1],
			 walk->words[0]);
}

/* Returns the pool of constants of the ConstMethod that was read. */
static __always_inline u64 read_pool(struct hotspot_walk *walk)
{
	return *(volatile u64 *)walk->constants;
}

/*
 * Returns the place of the class whose method was read. A variable with the place would
 * take stack.
 */
static __always_inline struct hotspot_class *
find_class(struct hotspot_walk *walk)
{
	u32 index = read_pool(walk) >> HOTSPOT_CLASS_SHIFT;

	asm volatile("%0 &= 7" : "+r"(index));
	return &walk->classes[index];
}

/*
 * Returns a hash of the name of the class whose method was read; 0 if it cannot be read.
 * Memory of a class that was unloaded can get another class of the same shape, so that
 * only the name tells them apart. The first word of a name has a number that the virtual
 * machine chose at random: Symbol of share/oops/symbol.hpp.
 */
static __always_inline u64 hash_class(struct chain_walk *chain,
				      struct hotspot_walk *walk,
				      struct hotspot_layout *layout)
{
	struct hotspot_class *class = find_class(walk);

	if (class->constants == read_pool(walk))
		return class->hash;
	if (!read_user(&walk->holder, sizeof(u64),
		       read_pool(walk) + layout->pool_holder) ||
	    !read_user(&walk->name, sizeof(u64),
		       walk->holder + layout->class_name) ||
	    !read_user(&walk->symbol, sizeof(u64), walk->name))
		return 0;
	note_code_word(&chain->frame, read_pool(walk) + layout->pool_holder,
		       walk->holder);
	note_code_word(&chain->frame, walk->holder + layout->class_name,
		       walk->name);
	note_code_word(&chain->frame, walk->name, walk->symbol);
	class = find_class(walk);
	class->constants = read_pool(walk);
	class->hash =
		hash_word(walk->name, walk->symbol & layout->symbol_bits) | 1;
	return class->hash;
}

/*
 * Notes a call of @method. @bytecode is the address of the bytecode, 0 in a native
 * method, or HOTSPOT_BEGINS. @current is used in its place if it is in the method.
 */
static __always_inline enum chain_end
note_method(struct chain_walk *chain, struct hotspot_walk *walk,
	    struct hotspot_layout *layout, struct mixed_stack *stack,
	    u64 method, u64 bytecode, u64 current)
{
	u32 slot = layout->code_size - HOTSPOT_CONSTANTS;
	s32 instruction = HOTSPOT_NATIVE;
	u64 start, checksum, size;

	if (!method || method % sizeof(u64))
		return CHAIN_BROKEN;
	if (!read_user(&walk->pointer, sizeof(walk->pointer),
		       method + HOTSPOT_CONST_METHOD) ||
	    !read_user(walk->constants, HOTSPOT_METHOD_BYTES,
		       walk->pointer + HOTSPOT_CONSTANTS))
		return CHAIN_READ_FAILED;
	checksum = hash_class(chain, walk, layout);
	if (!checksum)
		return CHAIN_READ_FAILED;
	asm volatile("%0 &= 63" : "+r"(slot));
	size = *(u16 *)(walk->constants + slot);
	checksum = hash_word(checksum, walk->pointer);
	checksum = hash_word(checksum, *(u64 *)walk->constants);
	checksum = hash_word(checksum, *(u64 *)(walk->constants + (slot & 56)));
	start = walk->pointer + layout->const_method_bytes;
	if (current - start < size)
		instruction = current - start;
	else if (bytecode - start < size)
		instruction = bytecode - start;
	else if (size && bytecode == HOTSPOT_BEGINS)
		instruction = 0;
	else if (size && bytecode)
		return CHAIN_BROKEN;
	note_frame(chain, stack, method, instruction, checksum >> 32);
	note_code_word(&chain->frame, method + HOTSPOT_CONST_METHOD,
		       walk->pointer);
	return CHAIN_GOES_ON;
}

/* Steps through a frame of the interpreter by its frame pointer. */
static __always_inline enum chain_end
step_interpreted(struct chain_walk *chain, struct hotspot_walk *walk,
		 struct hotspot_layout *layout, struct mixed_stack *stack,
		 u64 current)
{
	struct code_frame *frame = &chain->frame;
	enum chain_end end;
	u32 slot;

	if (frame->bp % sizeof(u64) ||
	    frame->bp - frame->sp > HOTSPOT_FRAME_BYTES)
		return CHAIN_BROKEN;
	if (!read_user(walk->words, HOTSPOT_FRAME_WORDS * sizeof(u64),
		       frame->bp - HOTSPOT_WORDS_BELOW * sizeof(u64)))
		return CHAIN_READ_FAILED;
	slot = HOTSPOT_WORDS_BELOW + layout->bytecode_slot;
	asm volatile("%0 &= 7" : "+r"(slot));
	frame->uses_bp = true;
	frame->bp_from = frame->bp;
	note_code_word(frame, frame->bp + layout->bytecode_slot * 8LL,
		       walk->words[slot]);
	note_code_word(frame, frame->bp - 3 * sizeof(u64),
		       walk->words[HOTSPOT_METHOD]);
	note_code_word(frame, frame->bp - sizeof(u64),
		       walk->words[HOTSPOT_SENDER_SP]);
	note_code_word(frame, frame->bp + sizeof(u64),
		       walk->words[HOTSPOT_WORDS_BELOW + 1]);
	end = note_method(chain, walk, layout, stack,
			  walk->words[HOTSPOT_METHOD], walk->words[slot],
			  current);
	if (end != CHAIN_GOES_ON)
		return end;
	return return_to(frame, walk->words[HOTSPOT_SENDER_SP],
			 walk->words[HOTSPOT_WORDS_BELOW + 1],
			 walk->words[HOTSPOT_WORDS_BELOW]);
}

/*
 * Steps through a frame of the interpreter while it enters a method, where it has not
 * built the frame yet, or only a part of it. Registers have the method, the caller's stack
 * pointer, and the return address once it is off the stack.
 */
static __always_inline enum chain_end step_entry(struct chain_walk *chain,
						 struct hotspot_walk *walk,
						 struct hotspot_layout *layout,
						 struct mixed_stack *stack,
						 struct pt_regs *leaf)
{
	struct code_frame *frame = &chain->frame;
	u64 whole = (1 - layout->bytecode_slot) * sizeof(u64);
	u64 built = frame->bp - frame->sp, ip, sp = leaf->REGS_SENDER_STACK;
	enum chain_end end;

	if (built % sizeof(u64) == 0 && built < whole) {
		if (!read_user(walk->words, 3 * sizeof(u64),
			       frame->bp - sizeof(u64)))
			return CHAIN_READ_FAILED;
		if (built)
			sp = walk->words[0];
		ip = walk->words[2];
		end = note_method(chain, walk, layout, stack, leaf->REGS_METHOD,
				  HOTSPOT_BEGINS, 0);
		if (end != CHAIN_GOES_ON)
			return end;
		return return_to(frame, sp, ip, walk->words[1]);
	}
	if (!read_user(walk->words, sizeof(u64), frame->sp))
		return CHAIN_READ_FAILED;
	ip = walk->words[0];
	if (built == whole || !is_return_address(walk, layout, ip)) {
		if (!read_user(walk->words, sizeof(u64),
			       frame->bp - 3 * sizeof(u64)))
			walk->words[0] = 0;
		if (built == whole || walk->words[0] == leaf->REGS_METHOD ||
		    !is_return_address(walk, layout, leaf->REGS_RETURN_ADDRESS))
			return step_interpreted(chain, walk, layout, stack, 0);
		ip = leaf->REGS_RETURN_ADDRESS;
	}
	end = note_method(chain, walk, layout, stack, leaf->REGS_METHOD,
			  HOTSPOT_BEGINS, 0);
	if (end != CHAIN_GOES_ON)
		return end;
	if (sp < frame->sp || sp - frame->sp > HOTSPOT_FRAME_BYTES)
		sp = frame->sp + sizeof(u64);
	return return_to(frame, sp, ip, frame->bp);
}

/* Returns the state of the frame of interrupted code, which enters at @entry. */
static __always_inline enum hotspot_frame
interrupted_frame(struct hotspot_walk *walk, u64 entry, u64 ip)
{
	enum hotspot_frame state = HOTSPOT_WHOLE;

	if (ip <= entry)
		return HOTSPOT_NO_FRAME;
	if (ip - entry < HOTSPOT_PROLOGUE_BYTES &&
	    read_user(walk->code.bytes, HOTSPOT_PROLOGUE_BYTES, entry))
		state = frame_at_entry(&walk->code, ip - entry);
	if (state == HOTSPOT_WHOLE &&
	    read_user(walk->code.bytes, 2 * HOTSPOT_BEFORE,
		      ip - HOTSPOT_BEFORE))
		state = frame_at_exit(&walk->code);
	return state;
}

/*
 * Steps through a frame of @bytes. Code may have pushed some words for a short time, so
 * the return address may be higher.
 */
static __always_inline enum chain_end
step_by_size(struct hotspot_walk *walk, struct hotspot_layout *layout,
	     struct code_frame *frame, u64 bytes)
{
	u64 end = frame->sp + bytes;

	if (bytes < 2 * sizeof(u64) || bytes > HOTSPOT_FRAME_BYTES)
		return CHAIN_BROKEN;
	if (!frame->is_exact)
		return return_above(walk, frame, end - 2 * sizeof(u64));
	if (!read_user(walk->words, (HOTSPOT_PUSHED_WORDS + 1) * sizeof(u64),
		       end - 2 * sizeof(u64)))
		return CHAIN_READ_FAILED;
	for (u32 i = 0; i < HOTSPOT_PUSHED_WORDS; i++) {
		if (is_return_address(walk, layout, walk->words[i + 1]))
			return return_to(frame, end + i * sizeof(u64),
					 walk->words[i + 1], walk->words[i]);
	}
	return CHAIN_BROKEN;
}

/* Steps through a frame of a compiled method, whose block was read. */
static __always_inline enum chain_end
step_compiled(struct chain_walk *chain, struct hotspot_walk *walk,
	      struct hotspot_layout *layout, struct mixed_stack *stack)
{
	struct code_frame *frame = &chain->frame;
	u64 bytes =
		(u64)(s32)block_word(walk, layout->frame_size) * sizeof(u64);
	u64 code = block_address(walk, layout, layout->code_begin);
	u64 ip = frame->ip, entry;
	enum hotspot_frame state;

	if (!frame->is_exact &&
	    (ip == block_address(walk, layout, layout->deoptimize) ||
	     ip == block_address(walk, layout, layout->deoptimize_handle))) {
		if (!read_user(&walk->pointer, sizeof(walk->pointer),
			       frame->sp + (u32)block_word(
						   walk, layout->original_pc)))
			return CHAIN_READ_FAILED;
		ip = walk->pointer;
		note_code_word(frame,
			       frame->sp + (u32)block_word(walk,
							   layout->original_pc),
			       ip);
	}
	if (ip - code > HOTSPOT_CODE_BYTES)
		return CHAIN_BROKEN;
	note_frame(chain, stack, walk->blob, ip - code,
		   block_word(walk, layout->compile_id));
	note_code_word(frame,
		       walk->blob - layout->block_header + layout->compile_id,
		       block_word(walk, layout->compile_id));
	if (!bytes)
		return return_at_top(walk, frame);
	if (frame->is_exact) {
		entry = block_word(walk, layout->verified_entry);
		if (layout->flags & HOTSPOT_ENTRY_IS_OFFSET)
			entry = code + (u16)entry;
		state = interrupted_frame(walk, entry, ip);
		if (state == HOTSPOT_NO_FRAME)
			return return_at_top(walk, frame);
		if (state == HOTSPOT_PUSHED)
			return return_above(walk, frame, frame->sp);
		if (state == HOTSPOT_NOT_SAVED) {
			u64 bp = frame->bp;
			enum chain_end end = return_above(
				walk, frame,
				frame->sp + bytes - 2 * sizeof(u64));

			frame->bp = bp;
			return end;
		}
	}
	return step_by_size(walk, layout, frame, bytes);
}

/* Steps through a frame of a stub, whose block was read. */
static __always_inline enum chain_end step_stub(struct hotspot_walk *walk,
						struct hotspot_layout *layout,
						struct code_frame *frame)
{
	s32 words = block_word(walk, layout->frame_size);
	u64 block = walk->blob - layout->block_header;
	enum hotspot_frame state = HOTSPOT_WHOLE;

	frame->uses_bp = true;
	if ((block == layout->deoptimization ||
	     block == layout->uncommon_trap) &&
	    !frame->is_exact && frame->bp >= frame->sp)
		return return_above(walk, frame, frame->bp);
	if (frame->is_exact) {
		u64 entry = words > 0 ? block_address(walk, layout,
						      layout->code_begin) :
					0;

		if (entry)
			state = interrupted_frame(walk, entry, frame->ip);
		else if (read_user(walk->code.bytes, 2 * HOTSPOT_BEFORE,
				   frame->ip - HOTSPOT_BEFORE))
			state = frame_at_exit(&walk->code);
		if (state == HOTSPOT_NO_FRAME)
			return return_at_top(walk, frame);
		if (state == HOTSPOT_PUSHED)
			return return_above(walk, frame, frame->sp);
	}
	if (words > 0)
		return step_by_size(walk, layout, frame, words * sizeof(u64));
	/* The search depends on many words. */
	frame->word_count = CODE_WORDS + 1;
	if (!read_words(walk, frame->sp))
		return CHAIN_READ_FAILED;
	if (frame->is_exact && is_return_address(walk, layout, walk->words[0]))
		return return_to(frame, frame->sp + sizeof(u64), walk->words[0],
				 frame->bp);
	if (frame->bp % sizeof(u64) == 0 &&
	    frame->bp - frame->sp < HOTSPOT_STUB_BYTES) {
		if (read_user(walk->pair, sizeof(walk->pair), frame->bp) &&
		    is_return_address(walk, layout, walk->pair[1]))
			return return_to(frame, frame->bp + sizeof(walk->pair),
					 walk->pair[1], walk->pair[0]);
	}
	for (u32 i = 0; i < HOTSPOT_STUB_WORDS; i++) {
		if (is_return_address(walk, layout, walk->words[i]))
			return return_to(frame,
					 frame->sp + (i + 1) * sizeof(u64),
					 walk->words[i], frame->bp);
	}
	return CHAIN_BROKEN;
}

/*
 * Notes the current frame of @chain, and steps to its caller. @leaf: the user registers, or
 * NULL if the frame is not the leaf. Returns CHAIN_LEFT_CODE if the caller is native code.
 */
static __always_inline enum chain_end
hotspot_unwind(struct chain_walk *chain, struct language_layout *of_machine,
	       struct mixed_stack *stack, struct pt_regs *leaf)
{
	struct hotspot_walk *walk = CHAIN_STATE(chain, struct hotspot_walk);
	struct hotspot_layout *layout =
		LAYOUT_OF(of_machine, struct hotspot_layout);
	struct code_frame *frame = &chain->frame;
	u64 ip = frame->ip, sp = frame->sp;
	bool may_leave = false;
	enum chain_end end;

	if (ip == layout->call_stub_return && !frame->is_exact) {
		if (frame->bp % sizeof(u64) || frame->bp < sp)
			return CHAIN_BROKEN;
		sp = frame->bp;
		frame->uses_bp = true;
		end = return_above(walk, frame, sp);
		may_leave = true;
	} else if (in_interpreter(layout, ip)) {
		if (ip - layout->entries_start >= layout->entries_bytes)
			end = step_interpreted(chain, walk, layout, stack,
					       leaf ? leaf->REGS_SENDER_STACK :
						      0);
		else if (leaf)
			end = step_entry(chain, walk, layout, stack, leaf);
		/* Some methods of java.lang.Math have no frame. */
		else if (read_user(walk->words, sizeof(u64), sp) &&
			 is_return_address(walk, layout, walk->words[0]))
			end = return_to(frame, sp + sizeof(u64), walk->words[0],
					frame->bp);
		else
			end = step_interpreted(chain, walk, layout, stack, 0);
	} else if (!read_block(walk, layout, ip)) {
		end = CHAIN_BROKEN;
	} else if (is_method(walk, layout)) {
		end = step_compiled(chain, walk, layout, stack);
	} else {
		end = step_stub(walk, layout, frame);
		may_leave = true;
	}
	if (end != CHAIN_GOES_ON || in_code_cache(layout, frame->ip))
		return end;
	if (!may_leave)
		return CHAIN_BROKEN;
	end = note_anchor(chain, stack, sp);
	return end == CHAIN_GOES_ON ? CHAIN_LEFT_CODE : end;
}

#endif
