// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Programs that run parts of offwaketime one by one on made-up input, for tests.
 * offwaketime has most of the clock, of unwinding and of the counts. The parts work on
 * the current task.
 */
#include "../../src/offwaketime.bpf.c"

/* Record of the current thread. */
struct sleeper clock;
u64 wait_blocked;
u64 wait_runnable;

SEC("raw_tp")
int end_wait(void *ctx)
{
	off_cpu_interval(bpf_get_current_task_btf(), &clock.record.thread,
			 wait_blocked, wait_runnable);
	return 0;
}

/* Words of the kernel's struct pt_regs. */
#define REGISTERS 21

u64 walk_registers[REGISTERS];
/* PID of the process of the addresses; 0 for the current process. */
u32 walk_pid;
u32 walk_is_exact;
u64 walk_instance;
/* Process whose share pays for the stack. */
u32 walk_payer;
/* ID of the stack that walk_stack() found. */
u64 walk_found;

SEC("raw_tp")
int walk_stack(void *ctx)
{
	struct stack_scratch *scratch = find_stack_scratch(SCRATCH_HOOK);
	struct task_struct *task = current_task();
	struct stack_event *event;

	if (!scratch)
		return 1;
	event = &scratch->event;
	if (!walk_pid)
		walk_instance = process_instance(task);
	event->pid = walk_pid ? walk_pid : namespace_pid(task);
	event->payer = walk_payer;
	event->instance = walk_instance;
	event->leaf_is_exact = walk_is_exact;
	event->walk_end = WALK_NOT_KNOWN;
	__builtin_memcpy(&scratch->walk.registers, walk_registers,
			 sizeof(scratch->walk.registers));
	walk_found = walk_by_tables(SCRATCH_HOOK);
	return 0;
}

/*
 * Made-up kernel stack with the user registers on top, and the number of words below
 * these. The next variables have the frames that the kernel's helper would return, and
 * the ID of the stack if the cache has it.
 */
u64 kernel_stack[SAVED_STACK_WORDS + MAX_USER_REGISTERS];
u64 kernel_stack_words;
u64 kernel_frames[KERNEL_STACK_DEPTH];
u32 kernel_depth;
u64 kernel_stack_id;

SEC("raw_tp")
int look_up_stack(void *ctx)
{
	struct saved_stack *stack = find_saved_stack();

	if (!stack)
		return 1;
	stack->stack_pointer = (u64)kernel_stack;
	stack->registers = stack->stack_pointer;
	barrier();
	stack->registers += kernel_stack_words * sizeof(u64);
	kernel_stack_id = find_saved_stacks_id();
	return 0;
}

/* Caches the stack after look_up_stack(), as after an unwind. */
SEC("raw_tp")
int cache_stack(void *ctx)
{
	struct stack_scratch *scratch = find_stack_scratch(SCRATCH_HOOK);

	if (!scratch)
		return 1;
	__builtin_memcpy(scratch->event.frames, kernel_frames,
			 sizeof(kernel_frames));
	return cache_kernel_stack(kernel_stack_id, kernel_depth);
}

struct stack_key count_key;
struct tally count_weight;

SEC("raw_tp")
int count_once(void *ctx)
{
	struct stack_key key = count_key;
	struct tally weight = count_weight;

	count(&key, &weight);
	return 0;
}

struct wake chain;
u64 chain_found;

SEC("raw_tp")
int name_chain(void *ctx)
{
	chain_found = publish_chain(&chain);
	return 0;
}

/* The current time for the parts below. */
u64 clock_now;

SEC("raw_tp")
int first_seen(void *ctx)
{
	clock_now = unseen_since(bpf_get_current_task_btf(), clock_now);
	return 0;
}

SEC("raw_tp")
int close_running(void *ctx)
{
	clock_now = close_interval(&sleeps, &clock.record.thread,
				   THREAD_RUNNING, clock_now);
	return 0;
}

/* Results of close_open(): whether the open interval counts, with its key and weight. */
bool open_counts;
struct closed_interval closed_open;

SEC("raw_tp")
int close_open(void *ctx)
{
	open_counts = close_record(&sleeps, &clock.record.thread,
				   &clock.record.open, clock_now, weigh,
				   &closed_open);
	return 0;
}

/* Notes the thread's run time, as at its switch-out. */
SEC("raw_tp")
int note_time_run(void *ctx)
{
	clock.record.thread.ran_before = time_run(bpf_get_current_task_btf());
	return 0;
}

SEC("raw_tp")
int arrive_unseen(void *ctx)
{
	arrive_belatedly(&sleeps, bpf_get_current_task_btf(),
			 &clock.record.thread, clock_now);
	return 0;
}
