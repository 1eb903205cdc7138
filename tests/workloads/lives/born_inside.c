// SPDX-License-Identifier: MIT
/*
 * Program that starts a child in a cgroup other than its own (clone3(2), CLONE_INTO_CGROUP).
 * The child sleeps for 300 ms and ends.
 *
 * usage: born_inside FOLDER_OF_THE_CGROUP
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "workload.h"

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

/* struct clone_args of Linux 5.7. */
struct clone_into_arguments {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack;
	uint64_t stack_size, tls, set_tid, set_tid_size, cgroup;
};

int main(int argc, char **argv)
{
	struct clone_into_arguments arguments = {
		.flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
	};
	uint64_t before;
	long child;
	int folder;

	check(argc != 2, "usage: born_inside FOLDER");
	folder = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(folder < 0, argv[1]);
	arguments.cgroup = (uint64_t)folder;

	before = now_ns();
	child = syscall(SYS_clone3, &arguments, sizeof(arguments));
	check(child < 0, "clone3");
	if (!child) {
		sleep_ns(300 * NS_PER_MS);
		_exit(0);
	}
	check(waitpid((pid_t)child, NULL, 0) != child, "waitpid");
	tell("child %ld before %llu after %llu", child,
	     (unsigned long long)before, (unsigned long long)now_ns());
	tell("ready");
	return 0;
}
