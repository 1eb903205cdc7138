/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Reads the current task's memory, which may be missing or forged. */
#ifndef SYSTEMSCOPE_USER_MEMORY_H
#define SYSTEMSCOPE_USER_MEMORY_H

#include "kernel_types.h"
#include <bpf/bpf_helpers.h>

static __always_inline bool read_user(void *to, u32 bytes, u64 address)
{
	return !bpf_probe_read_user(to, bytes, (void *)address);
}

#endif
