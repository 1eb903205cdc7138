/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Describes sockets by their addresses. */
#ifndef SYSTEMSCOPE_SOCKETS_H
#define SYSTEMSCOPE_SOCKETS_H

#include <bpf/bpf_endian.h>

#include "waits/object_event.h"
#include "task.h"

/*
 * Range of the ports that the kernel assigns, net.ipv4.ip_local_port_range. If only one
 * end of a connection has an assigned port, that port does not identify the socket.
 * Each connection may have another port there.
 */
const volatile u32 first_given_port = 32768;
const volatile u32 last_given_port = 60999;

/* include/linux/socket.h, include/net/tcp_states.h */
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define TCP_SYN_SENT 2
#define TCP_LISTEN 10
/* include/linux/net.h */
#define SOCK_DGRAM 2

static __always_inline void read_unix_address(struct object_event *event,
					      struct unix_sock *socket)
{
	struct unix_address *address = BPF_CORE_READ(socket, addr);
	u64 length;

	if (!address)
		return;
	length = (u32)BPF_CORE_READ(address, len);
	if (length <= sizeof(event->family))
		return;
	/* The barrier keeps each comparison visible for the verifier. */
	barrier_var(length);
	if (length > sizeof(event->family) + sizeof(event->name))
		return;
	length -= sizeof(event->family);
	if (bpf_probe_read_kernel(
		    event->name, length,
		    (void *)address +
			    bpf_core_field_offset(struct unix_address, name) +
			    sizeof(event->family)))
		return;
	event->name_length = length;
}

static __always_inline void describe_unix_socket(struct object_event *event,
						 struct sock *sock)
{
	struct unix_sock *socket = (void *)sock, *peer;

	read_unix_address(event, socket);
	peer = (void *)BPF_CORE_READ(socket, peer);
	/* An accepted socket has the address of its listening socket. */
	if (event->side != SIDE_LISTENS && event->name_length &&
	    !peer == (event->socket_type == SOCK_DGRAM))
		event->side = SIDE_ANSWERS;
	if (!event->name_length && peer) {
		read_unix_address(event, peer);
		if (event->name_length)
			event->side = SIDE_ASKS;
	}
	if (!event->name_length)
		event->peer_pid = pid_number(BPF_CORE_READ(sock, sk_peer_pid));
}

static __always_inline bool is_given(u16 port)
{
	return port >= first_given_port && port <= last_given_port;
}

/*
 * Sets the side by the ports: a client has an assigned port, a server a port that it
 * chose. Clears the assigned port.
 */
static __always_inline void judge_ports(struct object_event *event)
{
	bool local = is_given(event->local_port);
	bool remote = is_given(event->remote_port);

	if (event->side == SIDE_LISTENS)
		return;
	if (event->side == SIDE_ASKS) {
		if (local)
			event->local_port = 0;
		return;
	}
	if (!event->remote_port) {
		if (event->local_port && !local)
			event->side = SIDE_ANSWERS;
		return;
	}
	if (local == remote)
		return;
	if (local) {
		event->side = SIDE_ASKS;
		event->local_port = 0;
	} else {
		event->side = SIDE_ANSWERS;
		event->remote_port = 0;
	}
}

static __always_inline void describe_socket(struct object_event *event,
					    struct sock *sock)
{
	u16 port = BPF_CORE_READ(sock, __sk_common.skc_dport);
	u8 state = BPF_CORE_READ(sock, __sk_common.skc_state);

	event->object = OBJECT_SOCKET;
	event->family = BPF_CORE_READ(sock, __sk_common.skc_family);
	event->socket_type = BPF_CORE_READ(sock, sk_type);
	if (state == TCP_LISTEN)
		event->side = SIDE_LISTENS;
	if (event->family == AF_UNIX) {
		describe_unix_socket(event, sock);
		return;
	}
	if (event->family != AF_INET && event->family != AF_INET6)
		return;
	event->protocol = BPF_CORE_READ(sock, sk_protocol);
	event->local_port = BPF_CORE_READ(sock, __sk_common.skc_num);
	event->remote_port = bpf_ntohs(port);
	/* The socket is connecting. */
	if (state == TCP_SYN_SENT)
		event->side = SIDE_ASKS;
	judge_ports(event);
	if (event->family == AF_INET) {
		BPF_CORE_READ_INTO((u32 *)event->local_address, sock,
				   __sk_common.skc_rcv_saddr);
		BPF_CORE_READ_INTO((u32 *)event->remote_address, sock,
				   __sk_common.skc_daddr);
		return;
	}
	BPF_CORE_READ_INTO((struct in6_addr *)event->local_address, sock,
			   __sk_common.skc_v6_rcv_saddr);
	BPF_CORE_READ_INTO((struct in6_addr *)event->remote_address, sock,
			   __sk_common.skc_v6_daddr);
}

#endif
