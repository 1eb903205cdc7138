// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Parts of cpudist, to be run one by one on what a test makes up. */
#include "../../src/cpudist.bpf.c"

#include "end_wait.h"

u32 span_slot;
u32 span_belongs_to;
u64 span_length;

SEC("raw_tp")
int count_once(void *ctx)
{
	count_span(span_slot, span_belongs_to, span_length);
	return 0;
}
