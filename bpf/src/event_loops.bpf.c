// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Records each epoll_wait() of the first thread of some processes. User space makes the
 * turns of their event loops from these waits.
 *
 * The kernel calls the programs for each system call of every process. They compare the
 * call's number first, and then look up the thread.
 */
#include "task.h"

#include "system_calls.h"

/* A wait on an epoll instance that has begun. */
struct epoll_wait_entry {
	/* Start, in ns of CLOCK_MONOTONIC; 0 if the thread is not in such a wait. */
	u64 start_ns;
	/* Stack pointer of the call: a nested loop waits at a lower address. */
	u64 stack_pointer;
	/* Voluntary context switches of the thread before the wait. */
	u64 switches;
	u32 descriptor;
	u32 padding;
};

/* A wait on an epoll instance that has ended. */
struct epoll_wait_event {
	/* Start, in ns of CLOCK_MONOTONIC; 0 if it was before the programs were attached. */
	u64 start_ns;
	u64 end_ns;
	u64 stack_pointer;
	u32 tid;
	u32 descriptor;
	/* Number of ready files, or an error. */
	s32 result;
	/* Set if the thread left its CPU to sleep. */
	u32 slept;
};

USER_SPACE_KNOWS(struct, epoll_wait_event);

/* First threads by their IDs in the caller's PID namespace. User space adds them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct epoll_wait_entry);
} loop_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 23);
} epoll_waits SEC(".maps");

/* Waits that the ring buffer had no room for. */
u64 epoll_waits_lost = 0;

SEC("tp_btf/sys_enter")
int epoll_wait_began(u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	struct epoll_wait_entry *entry;
	struct task_struct *task;
	u32 tid;

	if (!is_epoll_wait(ctx[1]) || is_32_bit(regs->REGS_MODE))
		return 0;
	task = current_task();
	tid = namespace_tid(task);
	entry = bpf_map_lookup_elem(&loop_threads, &tid);
	if (!entry)
		return 0;
	entry->stack_pointer = regs->REGS_SP;
	entry->descriptor = regs->REGS_FIRST_ARGUMENT;
	entry->switches = read_task(task, nvcsw);
	entry->start_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sys_exit")
int epoll_wait_ended(u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	struct epoll_wait_event *event;
	struct epoll_wait_entry *entry;
	struct task_struct *task;
	u32 tid;

	if (!is_epoll_wait(regs->REGS_SYSTEM_CALL) ||
	    is_32_bit(regs->REGS_MODE))
		return 0;
	task = current_task();
	tid = namespace_tid(task);
	entry = bpf_map_lookup_elem(&loop_threads, &tid);
	if (!entry)
		return 0;
	event = bpf_ringbuf_reserve(&epoll_waits, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&epoll_waits_lost, 1);
		entry->start_ns = 0;
		return 0;
	}
	event->start_ns = entry->start_ns;
	event->end_ns = bpf_ktime_get_ns();
	event->stack_pointer = regs->REGS_SP;
	event->tid = tid;
	event->descriptor = regs->REGS_FIRST_ARGUMENT;
	event->result = (s32)ctx[1];
	/* A wait that began before has no count, and has slept. */
	event->slept = !entry->start_ns ||
		       entry->switches != read_task(task, nvcsw);
	entry->start_ns = 0;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
