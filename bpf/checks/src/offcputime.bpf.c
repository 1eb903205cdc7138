// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Programs that run parts of offcputime one by one on made-up input, for tests. */
#include "../../src/offcputime.bpf.c"

/* Record of the current thread. */
struct waiting_thread clock;
u64 wait_blocked;
u64 wait_runnable;

SEC("raw_tp")
int end_wait(void *ctx)
{
	off_cpu_interval(bpf_get_current_task_btf(), &clock.record.thread,
			 wait_blocked, wait_runnable);
	return 0;
}

/* Number of times that the current thread has left its CPU since its interval ended. */
u64 left_since;
/* Task of the interval; 0 for the current task. */
u64 returning_task;

/* Runs the return of the current thread, whose interval still needs its user stack. */
SEC("raw_tp")
int come_back(void *ctx)
{
	struct task_struct *task = current_task();
	struct returning *returning;
	u32 zero = 0;

	returning = bpf_map_lookup_elem(&returning_here, &zero);
	if (!returning)
		return 1;
	returning->task = returning_task ?: (u64)task;
	returning->switches = switch_count(untrusted(task)) - left_since;
	returning->weight.events = 1;
	count_returning(ctx, task);
	return 0;
}
