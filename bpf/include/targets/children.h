/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Processes that become targets while programs run: what targets fork, and what
 * these fork; and what executes a program that is waited for. User space loads
 * only what is asked for.
 */
#ifndef SYSTEMSCOPE_CHILDREN_H
#define SYSTEMSCOPE_CHILDREN_H

#include "targets/awaited_cgroups.h"
#include "events.h"
#include "targets/filter.h"

/* The most that is sent of a command line, a power of two. */
#define COMMAND_LINE_LENGTH 512

/* A process that a target forked, or the program that one executes from now on. */
struct process_event {
	u32 kind;
	/* In the caller's PID namespace. */
	u32 pid;
	u32 parent;
	/* Bytes of the command line; none are sent of a process just forked. */
	u32 length;
	u64 instance;
	/* CLOCK_BOOTTIME. */
	u64 started;
	/* The arguments, each with a NUL at its end. */
	u8 command_line[COMMAND_LINE_LENGTH];
};

USER_SPACE_KNOWS(struct, process_event);

#define PROCESS_EVENT_HEADER                                                   \
	__builtin_offsetof(struct process_event, command_line)

static __always_inline void describe_process(struct process_event *event,
					     struct task_struct *task)
{
	event->kind = EVENT_PROCESS;
	event->pid = namespace_pid(task);
	event->parent = namespace_pid(
		read_task(untrusted(task), group_leader, real_parent));
	event->length = 0;
	event->instance = process_instance(task);
	event->started =
		read_task(untrusted(task), group_leader, start_boottime);
}

/* Whether there is room for the process of @task, which is measured from now on. */
static __always_inline bool make_target(struct task_struct *task)
{
	u64 started = process_started(task);
	u32 pid = task->tgid;

	if (!bpf_map_update_elem(&target_pids, &pid, &started, BPF_ANY))
		return true;
	__sync_fetch_and_add(&lost.children, 1);
	return false;
}

/*
 * At sched_wakeup_new: runs in the one that forks, before the child runs for the first time, and with
 * interrupts off: at sched_process_fork kernels since 7 let others run meanwhile,
 * and of two that fork on one CPU then pass one by. Threads are of their process
 * and no children.
 */
static __always_inline int add_fork(u64 *ctx)
{
	struct task_struct *task = current_task();
	struct task_struct *child = (void *)ctx[0];
	u64 ids = bpf_get_current_pid_tgid();
	struct process_event *event;
	u32 pid = ids >> 32, tid = ids;

	if (child->pid != child->tgid || !is_target(task, pid, tid) ||
	    !make_target(child))
		return 0;
	/* Without room for it the process is measured, and not described. */
	event = bpf_ringbuf_reserve(&events, PROCESS_EVENT_HEADER, 0);
	if (event) {
		describe_process(event, child);
		bpf_ringbuf_submit(event, can_wait());
	}
	return 0;
}

/* The longest name of a program that can be waited for, and a NUL. */
#define PROGRAM_NAME_LENGTH 64

struct program_name {
	char text[PROGRAM_NAME_LENGTH];
};

/* What is known by a thread's name alone. */
enum awaited_name {
	AWAITED_NAME,
	/* The kernel cuts it off: only the file's name tells the rest. */
	AWAITED_NAME_CUT,
};

USER_SPACE_KNOWS(enum, awaited_name);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct program_name);
	__type(value, u8);
} awaited_programs SEC(".maps");

/* Of a script the thread has the name, and the file is that of its interpreter. */
static __always_inline bool is_awaited(struct task_struct *task)
{
	struct program_name thread = {}, file = {};
	const unsigned char *text;
	u8 *found;

	BPF_CORE_READ_STR_INTO(&thread.text, task, comm);
	found = bpf_map_lookup_elem(&awaited_programs, &thread);
	if (found && *found == AWAITED_NAME)
		return true;
	text = BPF_CORE_READ(task, mm, exe_file, f_path.dentry, d_name.name);
	bpf_probe_read_kernel_str(file.text, sizeof(file.text), text);
	if (bpf_map_lookup_elem(&awaited_programs, &file))
		return true;
	if (!found)
		return false;
	/* Where the file has the thread's name it has told the rest: another. */
	for (u32 i = 0; i < COMM_LENGTH - 1; i++) {
		if (file.text[i] != thread.text[i])
			return true;
	}
	return false;
}

/* At sched_process_exec. */
static __always_inline int add_awaited_program(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];

	if (is_target(task, task->tgid, task->pid) || !is_awaited(task) ||
	    !make_target(task))
		return 0;
	if (!first_awaited_ns)
		first_awaited_ns = bpf_ktime_get_ns();
	return 0;
}

/* At sched_process_exec: runs in the target, which has its new program's memory. */
static __always_inline int send_program(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct process_event *event;
	u64 start, length;

	if (!is_target(task, task->tgid, task->pid))
		return 0;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event)
		return 0;
	describe_process(event, task);
	start = BPF_CORE_READ(task, mm, arg_start);
	length = BPF_CORE_READ(task, mm, arg_end) - start;
	if (length > COMMAND_LINE_LENGTH - 1)
		length = COMMAND_LINE_LENGTH - 1;
	/* The verifier follows this more surely. */
	length &= COMMAND_LINE_LENGTH - 1;
	if (!bpf_probe_read_user(event->command_line, length, (void *)start))
		event->length = length;
	bpf_ringbuf_submit(event, can_wait());
	return 0;
}

/* At sched_process_free: all threads have ended, and the process has been waited for. */
static __always_inline int remove_process(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 pid = task->tgid;
	u64 *started;

	/* Its leader's is the last. */
	if (task->pid != task->tgid)
		return 0;
	/* A child may have the ID again. */
	started = bpf_map_lookup_elem(&target_pids, &pid);
	if (started && *started == read_task(task, start_time))
		bpf_map_delete_elem(&target_pids, &pid);
	return 0;
}

#endif
