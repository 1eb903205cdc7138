/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The end of a wait, as the including program deals with it. */

/* The clock of the thread that runs this. */
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
