// SPDX-License-Identifier: MIT
/*
 * Program that runs another program under a process ID of the caller's choice. The ID must be
 * free.
 *
 * usage: as_pid PID PROGRAM [ARGUMENT...]
 */
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "workload.h"

int main(int argc, char **argv)
{
	pid_t wanted = (pid_t)argument_or(argc, argv, 1, 0);
	struct clone_args how = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&wanted,
		.set_tid_size = 1,
	};
	long child;
	int status;

	check(argc < 3, "usage: as_pid PID PROGRAM [ARGUMENT...]");
	/* The process that had the ID may not be completely gone yet. */
	do {
		child = syscall(SYS_clone3, &how, sizeof(how));
	} while (child < 0 && errno == EEXIST && !usleep(1000));
	check(child < 0, "clone3");
	if (!child) {
		execv(argv[2], argv + 2);
		perror(argv[2]);
		_exit(1);
	}
	check(waitpid((pid_t)child, &status, 0) < 0, "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
