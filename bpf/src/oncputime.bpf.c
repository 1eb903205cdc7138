// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Samples of what runs, counted by stack. */

/* A sample is to wake nobody: see can_wait(). */
#define DUMPS_CAN_WAIT true

#include "targets/children.h"
#include "counts.h"
#include "targets/filter.h"
#include "targets/newcomers.h"
#include "stacks/stack_capture.h"
#include "window.h"

const volatile bool include_idle = false;

/* Not on the stack, of which the verifier allows 512 bytes. */
static const struct tally one_sample = { .events = 1 };

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	u64 ids = bpf_get_current_pid_tgid();
	u32 pid = ids >> 32, tid = ids;
	struct stack_key key = {};
	struct task_struct *task;
	u64 now = window_now();

	if (!now || window_is_over(now))
		return 0;
	task = current_task();
	if (tid ? !is_target(task, pid, tid) : !include_idle)
		return 0;

	if (tid) {
		key.pid = namespace_pid(task);
		if (!key.pid)
			return 0;
		if (per_thread)
			key.tid = namespace_tid(task);
	}
	bpf_get_current_comm(key.comm, sizeof(key.comm));

	key.user = capture_user_stack(ctx, SCRATCH_HOOK, task,
				      process_instance(task), key.pid);
	if (want_kernel_stacks)
		key.kernel = capture_kernel_stack(ctx, pid, true);
	count(&key, &one_sample);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
