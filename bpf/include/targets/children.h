/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Processes that become targets while programs run: descendants of targets, and
 * processes that execute an awaited program. User space loads only the programs that it
 * needs.
 */
#ifndef SYSTEMSCOPE_CHILDREN_H
#define SYSTEMSCOPE_CHILDREN_H

#include "targets/awaited_cgroups.h"
#include "events.h"
#include "targets/filter.h"

/* Maximum bytes of a command line that are sent, a power of two. */
#define COMMAND_LINE_LENGTH 512

/*
 * Message about a process that a target forked, or about a program that a target
 * executes.
 */
struct process_event {
	u32 kind;
	/* PID in the caller's PID namespace. */
	u32 pid;
	u32 parent;
	/* Bytes of the command line; 0 for a process just forked. */
	u32 length;
	u64 instance;
	/* Start time of the process, in ns of CLOCK_BOOTTIME. */
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

/* Makes the process of @task a target. Returns false if the map is full. */
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
 * Handles sched_wakeup_new, which runs in the forking task, before the child first runs
 * and with interrupts off. At sched_process_fork kernels since 7 can be preempted. A
 * program there would miss one of two tasks that fork on one CPU. A new thread belongs
 * to its process and is no child.
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
	/* If the buffer is full, programs measure the process but do not describe it. */
	event = bpf_ringbuf_reserve(&events, PROCESS_EVENT_HEADER, 0);
	if (event) {
		describe_process(event, child);
		bpf_ringbuf_submit(event, can_wait());
	}
	return 0;
}

/* Maximum length of an awaited program's name, with a NUL. */
#define PROGRAM_NAME_LENGTH 64

struct program_name {
	char text[PROGRAM_NAME_LENGTH];
};

/* Result of a match with a thread's name. */
enum awaited_name {
	AWAITED_NAME,
	/* The kernel cut the name off, and the file's name has the rest. */
	AWAITED_NAME_CUT,
};

USER_SPACE_KNOWS(enum, awaited_name);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct program_name);
	__type(value, u8);
} awaited_programs SEC(".maps");

/*
 * Returns whether @task executes an awaited program. A thread that executes a script
 * has the script's name, and its file is the interpreter.
 */
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
	/*
	 * If the file's name begins with the thread's name, the thread executes this
	 * file, whose name did not match. Otherwise the thread executes a script.
	 */
	for (u32 i = 0; i < COMM_LENGTH - 1; i++) {
		if (file.text[i] != thread.text[i])
			return true;
	}
	return false;
}

/* Handles sched_process_exec. */
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

/* Handles sched_process_exec, which runs in the target, with its new program's memory. */
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
	/* The verifier understands a mask better than a comparison. */
	length &= COMMAND_LINE_LENGTH - 1;
	if (!bpf_probe_read_user(event->command_line, length, (void *)start))
		event->length = length;
	bpf_ringbuf_submit(event, can_wait());
	return 0;
}

/*
 * Handles sched_process_free: all threads have ended, and the parent has reaped the
 * process.
 */
static __always_inline int remove_process(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 pid = task->tgid;
	u64 *started;

	/* The leader is freed last. */
	if (task->pid != task->tgid)
		return 0;
	/* A new child of a target may have the same PID by now. */
	started = bpf_map_lookup_elem(&target_pids, &pid);
	if (started && *started == read_task(task, start_time))
		bpf_map_delete_elem(&target_pids, &pid);
	return 0;
}

#endif
