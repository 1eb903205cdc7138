// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Counts samples of the running threads by stack. */

#include "targets/children.h"
#include "counts.h"
#include "targets/filter.h"
#include "targets/newcomers.h"
#include "stacks/named_threads.h"
#include "stacks/stack_capture.h"
#include "timeline.h"
#include "window.h"

const volatile bool include_idle = false;

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	const struct tally weight = { .events = 1 };
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
		if (counts_each_thread(key.pid))
			key.tid = namespace_tid(task);
	}
	bpf_get_current_comm(key.comm, sizeof(key.comm));

	key.user = capture_user_stack(ctx, SCRATCH_HOOK, task,
				      process_instance(task), key.pid);
	if (want_kernel_stacks)
		key.kernel = capture_kernel_stack(ctx, pid, true);
	count(&key, &weight);
	if (want_timeline)
		send_sample(&key, now);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int report_exec(u64 *ctx)
{
	return report_newcomer(ctx);
}

/* Returns whether a program is counting on this CPU. User space runs it on each CPU. */
SEC("raw_tp")
int visit_cpu(void *ctx)
{
	return is_counting_here();
}

/* Targets. */

SEC("tp_btf/cgroup_mkdir")
int await_cgroup(u64 *ctx)
{
	return add_awaited_cgroup(ctx);
}

SEC("tp_btf/cgroup_attach_task")
int await_member(u64 *ctx)
{
	return note_first_member((void *)ctx[2]);
}

SEC("tp_btf/sched_wakeup_new")
int await_birth(u64 *ctx)
{
	return note_first_member((void *)ctx[0]);
}

SEC("tp_btf/sched_process_exec")
int await_program(u64 *ctx)
{
	return add_awaited_program(ctx);
}

SEC("tp_btf/sched_wakeup_new")
int follow_fork(u64 *ctx)
{
	return add_fork(ctx);
}

SEC("tp_btf/sched_process_exec")
int describe_program(u64 *ctx)
{
	return send_program(ctx);
}

SEC("tp_btf/sched_process_free")
int forget_process(u64 *ctx)
{
	return remove_process(ctx);
}

SEC("iter/task")
int list_threads(struct bpf_iter__task *ctx)
{
	return write_thread_ids(ctx);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
