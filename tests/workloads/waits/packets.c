// SPDX-License-Identifier: MIT
/*
 * Thread that receives a packet every millisecond from another thread, through the loopback
 * device.
 *
 * usage: packets SECONDS
 */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "workload.h"

static int receiver_socket;

NOINLINE long receive(void)
{
	char byte;

	return raw_syscall4(SYS_read, receiver_socket, (long)&byte, 1, 0);
}

static void *receiver(void *unused)
{
	name_thread("receiver");
	while (receive() == 1)
		;
	return unused;
}

int main(int argc, char **argv)
{
	uint64_t seconds = argument_or(argc, argv, 1, 1);
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t length = sizeof(address);
	struct sockaddr *name = (struct sockaddr *)&address;
	int sender = socket(AF_INET, SOCK_DGRAM, 0);
	uint64_t end;

	receiver_socket = socket(AF_INET, SOCK_DGRAM, 0);
	check(receiver_socket < 0 || sender < 0, "socket");
	check(bind(receiver_socket, name, length), "bind");
	check(getsockname(receiver_socket, name, &length), "getsockname");
	start_thread_of(receiver, NULL);
	tell("ready");

	await_test();
	end = now_ns() + seconds * NS_PER_S;
	while (now_ns() < end) {
		sleep_ns(NS_PER_MS);
		check(sendto(sender, "x", 1, 0, name, length) != 1, "sendto");
	}
	return 0;
}
