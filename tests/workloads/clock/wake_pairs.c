// SPDX-License-Identifier: MIT
/*
 * Two processes that only wake each other. The asker wakes the answerer by a futex in shared
 * memory, and the answerer wakes the asker through a pipe. Each process computes before it
 * wakes the other one, which waits meanwhile. The answerer is not the first thread of its
 * process.
 *
 * usage: wake_pairs [COMPUTE_US]
 * The program prints the asker's process ID, the answerer's process ID and the answerer's
 * thread ID. Both begin when the test sends a line, and run until the test is gone.
 */
#include "workload.h"

#include <signal.h>

/* Memory that the two processes share. */
static struct shared {
	_Atomic uint32_t questions;
	_Atomic uint32_t answerer_tid;
	/* Each is set while its process is about to wait for the other process. */
	_Atomic uint32_t asker_waits;
	_Atomic uint32_t answerer_waits;
} * shared;

static int answers[2];
static uint64_t compute_ns;
static long cpus;

NOINLINE void compute(_Atomic uint32_t *other_waits)
{
	uint64_t end;

	/* With one CPU a process that was preempted before its wait would have no time to wait. */
	while (cpus == 1 && !atomic_load(other_waits))
		raw_syscall4(SYS_sched_yield, 0, 0, 0, 0);
	end = now_ns() + compute_ns;

	while (now_ns() < end)
		;
}

/* libc has no frame pointers, so the workload makes its own system calls. */

NOINLINE void wake_answerer(void)
{
	atomic_fetch_add(&shared->questions, 1);
	raw_syscall4(SYS_futex, (long)&shared->questions, FUTEX_WAKE, 1, 0);
}

NOINLINE void await_answer(void)
{
	char byte;

	atomic_store(&shared->asker_waits, 1);
	if (raw_syscall4(SYS_read, answers[0], (long)&byte, 1, 0) != 1)
		_exit(1);
	atomic_store(&shared->asker_waits, 0);
}

NOINLINE void ask(void)
{
	for (;;) {
		compute(&shared->answerer_waits);
		wake_answerer();
		await_answer();
	}
}

NOINLINE void await_question(uint32_t seen)
{
	atomic_store(&shared->answerer_waits, 1);
	while (atomic_load(&shared->questions) == seen)
		raw_syscall4(SYS_futex, (long)&shared->questions, FUTEX_WAIT,
			     seen, 0);
	atomic_store(&shared->answerer_waits, 0);
}

NOINLINE void wake_asker(void)
{
	if (raw_syscall4(SYS_write, answers[1], (long)"", 1, 0) != 1)
		_exit(1);
}

NOINLINE void *answer(void *unused)
{
	(void)unused;
	name_thread("answerer");
	atomic_store(&shared->answerer_tid, syscall(SYS_gettid));
	for (uint32_t seen = 0;; seen++) {
		await_question(seen);
		compute(&shared->asker_waits);
		wake_asker();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pid_t answering;

	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	compute_ns = argument_or(argc, argv, 1, 300) * NS_PER_US;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared == MAP_FAILED, "mmap");
	check(pipe(answers), "pipe");

	answering = fork();
	check(answering < 0, "fork");
	if (!answering) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		name_thread("answering");
		pthread_join(start_thread_of(answer, NULL), NULL);
	}
	name_thread("asker");
	while (!atomic_load(&shared->answerer_tid))
		sleep_ns(NS_PER_MS);
	tell("asker %d answering %d answerer %u", getpid(), answering,
	     atomic_load(&shared->answerer_tid));
	tell("ready");

	await_test();
	start_thread_of(leave_with_test, "leaver");
	ask();
}
