// SPDX-License-Identifier: MIT
/*
 * Threads that wait 10 ms at a time for something other than processes. Each thread has the
 * name of its wait. They wait for a connection to a socket that accepts none, over TCP and
 * over a Unix socket, and for the result of an io_uring.
 *
 * usage: rings
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "workload.h"

#define WAIT_NS (10 * NS_PER_MS)
#define PAGE 4096

/* Addresses of sockets whose backlogs are full. A new connection has to wait. */
static struct sockaddr_in crowded = { .sin_family = AF_INET };
static struct sockaddr_un crowded_unix = { .sun_family = AF_UNIX };
static socklen_t crowded_unix_length = sizeof(crowded_unix);

/* Binds a socket to @name, fills its backlog, and stores its address in @name and @length. */
static void crowd(int family, void *name, socklen_t bound, socklen_t *length)
{
	int fd = socket(family, SOCK_STREAM, 0);

	check(fd < 0 || bind(fd, name, bound) || listen(fd, 0) ||
		      getsockname(fd, name, length),
	      "socket");
	for (int at = 0; at < 4; at++)
		connect(socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0), name,
			*length);
}

static void try_to_connect(int family, const void *to, socklen_t length)
{
	const struct timeval patience = { .tv_usec = WAIT_NS / NS_PER_US };
	int fd = socket(family, SOCK_STREAM, 0);

	check(fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience,
				   sizeof(patience)),
	      "socket");
	check(!connect(fd, to, length), "connect");
	close(fd);
}

static void *wait_connect(void *unused)
{
	(void)unused;
	name_thread("r_connect");
	for (;;)
		try_to_connect(AF_INET, &crowded, sizeof(crowded));
	return NULL;
}

static void *wait_peer(void *unused)
{
	(void)unused;
	name_thread("r_peer");
	for (;;)
		try_to_connect(AF_UNIX, &crowded_unix, crowded_unix_length);
	return NULL;
}

/* Waits for an io_uring with a single request, which is a timeout. */
static void *wait_uring(void *unused)
{
	static const struct __kernel_timespec patience = { .tv_nsec = WAIT_NS };
	struct io_uring_params ring = { 0 };
	int fd = syscall(SYS_io_uring_setup, 1, &ring);
	struct io_uring_sqe *request;
	char *queues;

	(void)unused;
	check(fd < 0, "io_uring_setup");
	queues = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		      IORING_OFF_SQ_RING);
	request = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       IORING_OFF_SQES);
	check(queues == MAP_FAILED || request == MAP_FAILED, "mmap");
	name_thread("r_uring");
	for (;;) {
		*request = (struct io_uring_sqe){
			.opcode = IORING_OP_TIMEOUT,
			.fd = -1,
			.addr = (uintptr_t)&patience,
			.len = 1,
		};
		++*(_Atomic uint32_t *)(queues + ring.sq_off.tail);
		check(syscall(SYS_io_uring_enter, fd, 1, 1,
			      IORING_ENTER_GETEVENTS, NULL, 0) != 1,
		      "io_uring_enter");
		++*(_Atomic uint32_t *)(queues + ring.cq_off.head);
	}
	return NULL;
}

int main(void)
{
	socklen_t length = sizeof(crowded);

	crowded.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	crowd(AF_INET, &crowded, length, &length);
	crowd(AF_UNIX, &crowded_unix, sizeof(sa_family_t),
	      &crowded_unix_length);
	start_thread_of(wait_connect, NULL);
	start_thread_of(wait_peer, NULL);
	start_thread_of(wait_uring, NULL);
	tell("r_connect %d", ntohs(crowded.sin_port));
	tell("ready");
	return leave_with_test(NULL) != NULL;
}
