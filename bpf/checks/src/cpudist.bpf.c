// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Programs that run parts of cpudist one by one on made-up input, for tests. */
#include "../../src/cpudist.bpf.c"

/* Record of the current thread. */
struct thread clock;
u64 wait_blocked;
u64 wait_runnable;

SEC("raw_tp")
int end_wait(void *ctx)
{
	off_cpu_interval(bpf_get_current_task_btf(), &clock, wait_blocked,
			 wait_runnable);
	return 0;
}

u32 span_slot;
u32 span_belongs_to;
u64 span_length;

SEC("raw_tp")
int count_once(void *ctx)
{
	count_span(span_slot, span_belongs_to, span_length);
	return 0;
}
