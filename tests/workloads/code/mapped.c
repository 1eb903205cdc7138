// SPDX-License-Identifier: MIT
/*
 * Program that maps the first page of each given file as code. After the test sends a line it
 * forks, and each process sleeps over and over.
 *
 * usage: mapped CHILDREN [FILE...]
 */
#include <fcntl.h>
#include <signal.h>

#include "workload.h"

int main(int argc, char **argv)
{
	unsigned long children = argument_or(argc, argv, 1, 0);

	for (int i = 2; i < argc; i++) {
		int file = open(argv[i], O_RDONLY | O_CLOEXEC);
		void *code;

		check(file < 0, argv[i]);
		code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE,
			    file, 0);
		check(code == MAP_FAILED, "mmap");
		close(file);
	}
	tell("ready");

	await_test();
	for (unsigned long n = 0; n < children; n++) {
		pid_t child = fork();

		check(child < 0, "fork");
		if (!child) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				sleep_ns(100 * NS_PER_MS);
		}
	}
	tell("done");
	for (;;)
		sleep_ns(10 * NS_PER_MS);
}
