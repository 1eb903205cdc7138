/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Code that HotSpot generates: registers of its interpreter, calls, and the instructions
 * with which compiled methods begin and end.
 * shared/languages/src/arch/x86_64.rs has the same for user space.
 */
#ifndef SYSTEMSCOPE_HOTSPOT_CODE_H
#define SYSTEMSCOPE_HOTSPOT_CODE_H

#include "kernel_types.h"

/*
 * Fields of struct pt_regs in code that enters a method: the method, the caller's stack
 * pointer, and the return address. In a method, the register of the stack pointer has the
 * address of the bytecode.
 */
#define REGS_METHOD bx
#define REGS_SENDER_STACK r13
#define REGS_RETURN_ADDRESS ax

enum hotspot_code_limits {
	/* Bytes of code before a return address in which the call is searched for. */
	HOTSPOT_CALL_BYTES = 8,
	/* Maximum instructions before a method's frame is built, and their bytes. */
	HOTSPOT_PROLOGUE = 6,
	HOTSPOT_PROLOGUE_BYTES = 48,
	/* Bytes of code that are read before the instruction pointer, and after it. */
	HOTSPOT_BEFORE = 16,
};

USER_SPACE_KNOWS(enum, hotspot_code_limits);

/* Code that is decoded, and space for 4 bytes at any 6-bit offset. */
struct hotspot_code {
	u8 bytes[64 + sizeof(u64)];
};

/*
 * Returns whether the last instruction of @code, which is before a return address, is a
 * call. A call is E8 with 4 bytes, or FF /2 with 1 to 6 bytes (Intel 64 and IA-32 Software
 * Developer's Manual, volume 2A).
 */
static __always_inline bool follows_call(u64 code)
{
	return (code >> 24 & 0xff) == 0xe8 || (code >> 48 & 0x38ff) == 0x10ff ||
	       (code >> 40 & 0x38ff) == 0x10ff ||
	       (code >> 16 & 0x38ff) == 0x10ff ||
	       (code >> 8 & 0x38ff) == 0x10ff;
}

/* Returns the byte at @offset in the code that was read. */
static __always_inline u8 code_byte(struct hotspot_code *code, u32 offset)
{
	asm volatile("%0 &= 63" : "+r"(offset));
	return code->bytes[offset];
}

/* Returns 4 bytes from @offset on in the code that was read. */
static __always_inline u32 code_bytes(struct hotspot_code *code, u32 offset)
{
	asm volatile("%0 &= 63" : "+r"(offset));
	return *(u32 *)(code->bytes + offset);
}

/* State of the frame in a method's first and last instructions. */
enum hotspot_frame {
	/* The return address is at the stack pointer. */
	HOTSPOT_NO_FRAME,
	/* The frame pointer is there, and the return address is above it. */
	HOTSPOT_PUSHED,
	/* The frame is whole, but the frame pointer still has the caller's value. */
	HOTSPOT_NOT_SAVED,
	HOTSPOT_WHOLE,
};

/*
 * Returns the state of the frame at @distance bytes from the entry whose code was read.
 * The forms of the first instructions are those of MacroAssembler::verified_entry() and
 * C1_MacroAssembler::build_frame().
 */
static __always_inline enum hotspot_frame
frame_at_entry(struct hotspot_code *code, u64 distance)
{
	u32 at = 0, word;

	for (u32 i = 0; i < HOTSPOT_PROLOGUE; i++) {
		word = code_bytes(code, at);
		if ((word & 0xffffff) == 0x248489)
			/* mov %eax, DISPLACEMENT(%rsp): touches the stack's end */
			at += 7;
		else if (word == 0x00441f0f)
			at += 5;
		else if ((word & 0xffffff) == 0x906666)
			at += 3;
		else if (word == 0x00401f0f)
			at += 4;
		else if ((u8)word == 0x90)
			at++;
		else
			break;
	}
	if (distance <= at)
		return HOTSPOT_NO_FRAME;
	word = code_bytes(code, at);
	if ((u8)word == 0x55) {
		/* push %rbp */
		at++;
		word = code_bytes(code, at) & 0xffffff;
		if (word == 0xec8b48 || word == 0xe58948) {
			/* mov %rsp, %rbp */
			at += 3;
			word = code_bytes(code, at) & 0xffffff;
		}
		/* sub $IMMEDIATE, %rsp */
		if (word == 0xec8348)
			at += 4;
		else if (word == 0xec8148)
			at += 7;
		return distance < at ? HOTSPOT_PUSHED : HOTSPOT_WHOLE;
	}
	word &= 0xffffff;
	if (word != 0xec8348 && word != 0xec8148)
		return HOTSPOT_WHOLE;
	at += word == 0xec8348 ? 4 : 7;
	/* mov %rbp, DISPLACEMENT(%rsp) */
	word = code_bytes(code, at);
	if (word == 0x246c8948)
		at += 5;
	else if (word == 0x24ac8948)
		at += 8;
	return distance < at ? HOTSPOT_NOT_SAVED : HOTSPOT_WHOLE;
}

/*
 * Returns the state of the frame by the instructions around the instruction pointer, whose
 * code was read from HOTSPOT_BEFORE bytes before it. Methods end with the frame's removal,
 * a poll for safepoints, and the return.
 */
static __always_inline enum hotspot_frame
frame_at_exit(struct hotspot_code *code)
{
	u32 at = HOTSPOT_BEFORE;
	u32 word = code_bytes(code, at);
	u8 last = code_byte(code, at - 1);

	/* pop %rbp */
	if ((u8)word == 0x5d)
		return HOTSPOT_PUSHED;
	/* ret */
	if ((u8)word == 0xc3 || (u8)word == 0xc2)
		return HOTSPOT_NO_FRAME;
	/* add $IMMEDIATE, %rsp; pop %rbp */
	if (last == 0x5d &&
	    ((code_bytes(code, at - 5) & 0xffffff) == 0xc48348 ||
	     (code_bytes(code, at - 8) & 0xffffff) == 0xc48148))
		return HOTSPOT_NO_FRAME;
	/* leave; cmpq $0, DISPLACEMENT(%r15), which asks for pending exceptions */
	if (last == 0xc9 &&
	    ((word & 0xffffff) == 0x7f8349 || (word & 0xffffff) == 0xbf8349))
		return HOTSPOT_NO_FRAME;
	/* ja or jne to the stub of the poll, or of pending exceptions; ret */
	if (((word & 0xffff) == 0x870f || (word & 0xffff) == 0x850f) &&
	    code_byte(code, at + 6) == 0xc3)
		return HOTSPOT_NO_FRAME;
	/* test %eax, (%r10); ret */
	if (word == 0xc3028541)
		return HOTSPOT_NO_FRAME;
	/* test %eax, DISPLACEMENT(%rip); ret */
	if ((word & 0xffff) == 0x0585 && code_byte(code, at + 6) == 0xc3)
		return HOTSPOT_NO_FRAME;
	/* lea DISPLACEMENT(%rip), %r10; mov %r10, DISPLACEMENT(%r15); jmp */
	if ((word & 0xffffff) == 0x158d4c &&
	    (code_bytes(code, at + 7) & 0xffffff) == 0x97894d)
		return HOTSPOT_NO_FRAME;
	if ((word & 0xffffff) == 0x97894d &&
	    (code_bytes(code, at - 7) & 0xffffff) == 0x158d4c &&
	    code_byte(code, at + 7) == 0xe9)
		return HOTSPOT_NO_FRAME;
	if ((u8)word == 0xe9 &&
	    (code_bytes(code, at - 7) & 0xffffff) == 0x97894d &&
	    (code_bytes(code, at - 14) & 0xffffff) == 0x158d4c)
		return HOTSPOT_NO_FRAME;
	return HOTSPOT_WHOLE;
}

#endif
