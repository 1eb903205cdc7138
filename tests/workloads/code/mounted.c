// SPDX-License-Identifier: MIT
/*
 * Program that runs itself as another user, from a file system that root may not access, and
 * prints the child's ID. The child's chain is main, outer, inner, and nap or burn. The program
 * needs root.
 */
#define _GNU_SOURCE
#include "fuse.h"

#include <sys/wait.h>

#define NOBODY 65534

/* Size of additional constants in the program, in bytes. */
#ifndef PADDING
#define PADDING 1
#endif
const char padding[PADDING] = { 1 };

static volatile unsigned int salt;

NOINLINE int nap(void)
{
	sleep_ns(2 * NS_PER_MS);
	return salt + 1;
}

NOINLINE int burn(void)
{
	for (volatile unsigned int turn = 0; turn < 1000000; turn++)
		;
	return salt + 1;
}

NOINLINE int inner(void)
{
	volatile unsigned char bytes[salt + 300];

	bytes[salt] = 1;
	return nap() + burn() + bytes[salt];
}

NOINLINE int outer(void)
{
	volatile unsigned char bytes[1000];

	bytes[salt] = 1;
	return inner() + bytes[salt];
}

static char *read_file(const char *path, size_t *size)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	char *bytes;

	check(file < 0 || fstat(file, &stat), path);
	*size = stat.st_size;
	bytes = malloc(*size);
	check(!bytes || read(file, bytes, *size) != (ssize_t)*size, path);
	return bytes;
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/mounted-XXXXXX";
	struct fuse_file file;
	char path[64];
	pid_t child;

	if (argc > 1) {
		for (;;)
			outer();
	}
	file.bytes = read_file("/proc/self/exe", &file.size);
	mount_file(folder, NOBODY, &file);
	snprintf(path, sizeof(path), "%s/%s", folder, "mounted");
	child = fork();
	check(child < 0, "fork");
	if (!child) {
		check(setresgid(NOBODY, NOBODY, NOBODY), "setresgid");
		check(setresuid(NOBODY, NOBODY, NOBODY), "setresuid");
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, path, "run", NULL);
		check(1, path);
	}
	sleep_ns(300 * NS_PER_MS);
	check(access(path, R_OK) == 0, "root may look at the file");
	umount2(folder, MNT_DETACH);
	rmdir(folder);
	tell("child %d", child);
	tell("ready");
	waitpid(child, NULL, 0);
	return 0;
}
