// SPDX-License-Identifier: MIT
/*
 * Threads that wait on objects that are hard to identify.
 *
 * usage: objects swap a descriptor that gets another file while its reader waits
 *        objects names FOLDER    files and sockets with hostile names, one of them deleted
 *        objects many COUNT      COUNT pipes, each waited on once
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "workload.h"

static int reads, woken[2], resume[2];

static void take(int fd)
{
	char byte;

	check(read(fd, &byte, 1) != 1, "read");
}

static void give(int fd)
{
	check(write(fd, "x", 1) != 1, "write");
}

static void *reader(void *unused)
{
	(void)unused;
	name_thread("o_swapped");
	for (;;) {
		take(reads);
		give(woken[1]);
		take(resume[0]);
	}
	return NULL;
}

/*
 * While the reader waits on a pipe, its descriptor gets another file: /dev/zero and another
 * pipe in turn. The other pipe has data for a reader that comes late.
 */
static void swap(void)
{
	int zero = open("/dev/zero", O_RDONLY), pair[2], other[2], becomes;
	static char much[4096];
	struct stat status;

	check(zero < 0 || pipe(woken) || pipe(resume) || pipe(pair), "pipe");
	check(pipe(other) || fstat(other[0], &status), "pipe");
	check(write(other[1], much, sizeof(much)) < 0, "write");
	reads = pair[0];
	start_thread_of(reader, NULL);
	sleep_ns(20 * NS_PER_MS);
	tell("other %lu", status.st_ino);
	tell("ready");
	for (becomes = zero;; becomes = becomes == zero ? other[0] : zero) {
		/* At this time the reader waits. */
		sleep_ns(5 * NS_PER_MS);
		check(dup2(becomes, reads) != reads, "dup2");
		sleep_ns(5 * NS_PER_MS);
		give(pair[1]);
		take(woken[0]);
		close(pair[1]);
		/* The reader reads /dev/zero, so the traces on its stack name that file. */
		check(dup2(zero, reads) != reads, "dup2");
		give(resume[1]);
		take(woken[0]);
		check(pipe(pair) || dup2(pair[0], reads) != reads, "pipe");
		close(pair[0]);
		give(resume[1]);
	}
}

static void *read_for_good(void *fd)
{
	name_thread("o_named");
	for (;;)
		take((int)(long)fd);
	return NULL;
}

static void *accept_for_good(void *fd)
{
	name_thread("o_named");
	for (;;)
		close(accept((int)(long)fd, NULL, NULL));
	return NULL;
}

/* Makes a FIFO. It has no data until a thread writes. */
static long fifo(const char *folder, const char *name)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	check(mkfifo(path, 0600), "mkfifo");
	fd = open(path, O_RDWR);
	check(fd < 0, "open");
	return fd;
}

static long listening(const char *folder, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	/*
	 * The directory's path may be too long for an address, so the name is relative to the
	 * directory.
	 */
	check(chdir(folder), "chdir");
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", name);
	check(fd < 0 || bind(fd, (void *)&address, sizeof(address)) ||
		      listen(fd, 1),
	      "listen");
	return fd;
}

static void names(const char *folder)
{
	const long fds[] = {
		fifo(folder, "a;b\nc\x1b[31m 7"),
		fifo(folder, "deleted"),
		fifo(folder, "caf\xe9"),
	};
	char path[4096];

	for (unsigned long at = 0; at < sizeof(fds) / sizeof(fds[0]); at++)
		start_thread_of(read_for_good, (void *)fds[at]);
	start_thread_of(accept_for_good, (void *)listening(folder, "s;\n\xff"));
	snprintf(path, sizeof(path), "%s/deleted", folder);
	check(unlink(path), "unlink");
	sleep_ns(20 * NS_PER_MS);
	tell("ready");
	for (;;) {
		sleep_ns(20 * NS_PER_MS);
		for (unsigned long at = 0; at < sizeof(fds) / sizeof(fds[0]);
		     at++)
			give(fds[at]);
	}
}

static void *waker(void *unused)
{
	(void)unused;
	name_thread("k_waker");
	for (;;) {
		int fd;

		check(read(reads, &fd, sizeof(fd)) != sizeof(fd), "read");
		sleep_ns(20 * NS_PER_US);
		give(fd);
		close(fd);
	}
	return NULL;
}

static void many(long count)
{
	int orders[2], pair[2];

	check(pipe(orders), "pipe");
	reads = orders[0];
	start_thread_of(waker, NULL);
	name_thread("o_many");
	tell("ready");
	await_test();
	for (; count; count--) {
		check(pipe(pair), "pipe");
		check(write(orders[1], &pair[1], sizeof(int)) != sizeof(int),
		      "write");
		take(pair[0]);
		close(pair[0]);
	}
	tell("done");
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "many"))
		many(atol(argv[2]));
	start_thread_of(leave_with_test, NULL);
	if (argc == 2 && !strcmp(argv[1], "swap"))
		swap();
	if (argc == 3 && !strcmp(argv[1], "names"))
		names(argv[2]);
	return 2;
}
