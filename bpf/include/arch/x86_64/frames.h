/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Layout of the frames of functions, of signal handlers and of linkage tables. */
#ifndef SYSTEMSCOPE_FRAMES_H
#define SYSTEMSCOPE_FRAMES_H

#include "kernel_types.h"

/*
 * Offset of a function's return address from its canonical frame address (System V ABI
 * for x86-64, section 3.2.2).
 */
#define RETURN_ADDRESS_AT_CFA (-8)

/*
 * Registers in struct sigcontext_64 (arch/x86/include/uapi/asm/sigcontext.h),
 * which a signal frame holds.
 */
#define SIGNAL_FRAME_BP 80
#define SIGNAL_FRAME_SP 120
#define SIGNAL_FRAME_IP 128
/* x86-64 does not use it: see HAS_LINK_REGISTER. */
#define SIGNAL_FRAME_LINK 0

/*
 * Returns the CFA in an entry of the procedure linkage table. If the ip is at byte
 * @pushed of the entry or behind it, the entry has pushed its number.
 */
static __always_inline u64 cfa_in_plt(u64 sp, u64 ip, u32 pushed)
{
	return sp + 8 + ((ip & 15) >= pushed ? 8 : 0);
}

#endif
