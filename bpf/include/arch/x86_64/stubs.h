/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Stubs that runtimes write into memory. No table describes a stub, and a stub keeps no
 * frame pointer. A stub is so short that the unwind can read all its instructions up to
 * the return. They show where the caller's frame is.
 * shared/unwind/src/arch/x86_64/stub.rs has the same algorithm and names the runtimes.
 */
#ifndef SYSTEMSCOPE_STUBS_H
#define SYSTEMSCOPE_STUBS_H

#include "kernel_types.h"

/* Maximum instructions that the unwind reads of a stub, in two words. */
#define STUB_INSTRUCTIONS 6

struct stub_frame {
	/* Offset of the canonical frame address from the stack pointer. */
	s64 cfa_offset;
	/*
	 * Offset of the saved frame pointer from the stack pointer; negative if the
	 * stub has not saved it.
	 */
	s64 bp_offset;
};

/*
 * Decodes the instructions in @low and @high, from the next instruction to execute on.
 * Returns whether they reach the end of a stub.
 */
static __always_inline bool read_stub(u64 low, u64 high,
				      struct stub_frame *frame)
{
	s64 offset = 0, bp_offset = -1;
	u32 bytes;

#pragma unroll
	for (u32 i = 0; i < STUB_INSTRUCTIONS; i++) {
		if ((u8)low == 0xc3) {
			/* ret */
			frame->cfa_offset = offset + 8;
			frame->bp_offset = bp_offset;
			return offset >= 0;
		}
		bytes = 4;
		if ((low & 0xffffff) == 0xc48348) {
			/* add $IMMEDIATE, %rsp */
			offset += (s64)(low << 32) >> 56;
		} else if ((low & 0xffffff) == 0xec8348) {
			/* sub $IMMEDIATE, %rsp */
			offset -= (s64)(low << 32) >> 56;
		} else if ((u32)low == 0xfa1e0ff3) {
			/* endbr64 */
		} else if ((low & 0xf8ff) == 0xd0ff) {
			/* call *REGISTER */
			bytes = 2;
		} else if ((low & 0xffffff) == 0xe58948) {
			/* mov %rsp, %rbp */
			bytes = 3;
		} else if ((u8)low == 0x55) {
			/* push %rbp */
			offset -= 8;
			bytes = 1;
		} else if ((u8)low == 0x5d) {
			/* pop %rbp */
			bp_offset = offset;
			offset += 8;
			bytes = 1;
		} else {
			return false;
		}
		low = low >> 8 * bytes | high << (64 - 8 * bytes);
		high >>= 8 * bytes;
	}
	return false;
}

#endif
