/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Message that describes a resource on which threads wait. */
#ifndef SYSTEMSCOPE_OBJECT_EVENT_H
#define SYSTEMSCOPE_OBJECT_EVENT_H

#include "events.h"

/* True if the command line asks for resources. */
const volatile bool want_objects = false;

/* ID of an unknown resource. */
#define NO_OBJECT 0ULL

enum object_kind {
	OBJECT_FUTEX,
	OBJECT_FILE,
	/* A file, of which the thread touched a mapped page. */
	OBJECT_MAPPED,
	OBJECT_SOCKET,
	/* A file that shares its inode with others, by its name: [eventfd], [timerfd]. */
	OBJECT_ANONYMOUS,
	/* A child that has ended, by its name. */
	OBJECT_CHILD,
	/* A pidfd. @tid is its process. The name is known while the process exists. */
	OBJECT_PIDFD,
};

USER_SPACE_KNOWS(enum, object_kind);

/* Side of a connection on which a socket is. */
enum socket_side {
	SIDE_UNKNOWN,
	/* The socket accepts connections. */
	SIDE_LISTENS,
	/* The socket receives requests and sends answers. */
	SIDE_ANSWERS,
	/* The socket sends requests and receives answers. */
	SIDE_ASKS,
};

USER_SPACE_KNOWS(enum, socket_side);

/* UNIX_PATH_MAX of include/uapi/linux/un.h, rounded up to whole words. */
#define OBJECT_NAME_LENGTH 112

struct object_event {
	u32 kind;
	u32 object;
	u64 id;
	u64 instance;
	/*
	 * Process to which the file descriptor or address belongs, in the caller's PID
	 * namespace.
	 */
	u32 pid;
	u32 fd;
	/*
	 * A futex: its address, the operation without flags, and the expected value. The
	 * upper bits of the operation have the language whose lock this is, if known:
	 * see LOCK_LANGUAGE_SHIFT.
	 */
	u64 address;
	/* Class of the object that a runtime locks with the futex, or 0. */
	u64 class;
	u32 operation;
	u32 value;
	/* Thread that held the lock, if the lock names its holder; process of a pidfd. */
	u32 tid;
	/* Device of a file in the kernel's encoding: MKDEV of include/linux/kdev_t.h. */
	u32 device;
	u64 inode;
	u32 generation;
	u32 mode;
	/* A socket: ports are in host byte order, addresses in network byte order. */
	u16 family;
	u16 socket_type;
	u16 protocol;
	/* enum socket_side */
	u16 side;
	u16 local_port;
	u16 remote_port;
	/* Process of a local socket's peer, if known. */
	u32 peer_pid;
	u8 local_address[16];
	u8 remote_address[16];
	/*
	 * Address of a local socket, as in sun_path; last component of a file's path;
	 * name of any other resource.
	 */
	u32 name_length;
	u8 name[OBJECT_NAME_LENGTH];
	u32 unused;
};

USER_SPACE_KNOWS(struct, object_event);

/* Value of @fd if the system call has no descriptor of the file. */
#define NO_FILE_DESCRIPTOR (~0U)

/* Range of the fields that distinguish resources, before the name. */
#define OBJECT_WORDS_FROM __builtin_offsetof(struct object_event, address)
#define OBJECT_WORDS_TO __builtin_offsetof(struct object_event, name_length)

static __always_inline u64 object_id(struct object_event *event)
{
	u64 hash = hash_word(event->object, event->instance);
	u64 *words = (void *)event + OBJECT_WORDS_FROM;

	for (u32 i = 0; i < (OBJECT_WORDS_TO - OBJECT_WORDS_FROM) / sizeof(u64);
	     i++)
		hash = hash_word(hash, words[i]);
	if (event->name_length) {
		words = (void *)event + OBJECT_WORDS_TO;
		for (u32 i = 0; i < (OBJECT_NAME_LENGTH + 8) / sizeof(u64); i++)
			hash = hash_word(hash, words[i]);
	}
	return stack_id(hash);
}

#endif
