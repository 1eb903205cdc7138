/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What user space learns of a thing that threads wait on. */
#ifndef SYSTEMSCOPE_OBJECT_EVENT_H
#define SYSTEMSCOPE_OBJECT_EVENT_H

#include "events.h"

/* Whether objects are asked for. */
const volatile bool want_objects = false;

/* The ID of what is not known. */
#define NO_OBJECT 0ULL

enum object_kind {
	OBJECT_FUTEX,
	OBJECT_FILE,
	/* A file of which the thread touched a page. */
	OBJECT_MAPPED,
	OBJECT_SOCKET,
	/* A file that shares its inode with others, by its name: [eventfd], [timerfd]. */
	OBJECT_ANONYMOUS,
	/* A child that has ended, by its name. */
	OBJECT_CHILD,
	/* A pidfd: @tid is of its process, and the name while that is there. */
	OBJECT_PIDFD,
};

USER_SPACE_KNOWS(enum, object_kind);

/* Which side of a connection a socket is on. */
enum socket_side {
	SIDE_UNKNOWN,
	/* It is no connection yet: connections come to it. */
	SIDE_LISTENS,
	/* What comes there is asked for by others. */
	SIDE_ANSWERS,
	/* What comes there was asked for. */
	SIDE_ASKS,
};

USER_SPACE_KNOWS(enum, socket_side);

/* UNIX_PATH_MAX of include/uapi/linux/un.h, in whole words with what is before it. */
#define OBJECT_NAME_LENGTH 112

struct object_event {
	u32 kind;
	u32 object;
	u64 id;
	u64 instance;
	/* Whose file descriptor or address it is, in the caller's PID namespace. */
	u32 pid;
	u32 fd;
	/* Of a futex: its address, the operation without flags, and what it had to be. */
	u64 address;
	u32 operation;
	u32 value;
	/* The thread that held the lock, where the lock says so; of a pidfd the process. */
	u32 tid;
	/* A file's place, as the kernel has it: MKDEV of include/linux/kdev_t.h. */
	u32 device;
	u64 inode;
	u32 generation;
	u32 mode;
	/* A socket: ports are in the order of this machine, addresses in that of the net. */
	u16 family;
	u16 socket_type;
	u16 protocol;
	/* enum socket_side */
	u16 side;
	u16 local_port;
	u16 remote_port;
	/* Of a local socket's peer, as far as that is known. */
	u32 peer_pid;
	u8 local_address[16];
	u8 remote_address[16];
	/* A local socket's address, as in sun_path; a name, of a file the last one. */
	u32 name_length;
	u8 name[OBJECT_NAME_LENGTH];
	u32 unused;
};

USER_SPACE_KNOWS(struct, object_event);

/* Where the call says it otherwise. */
#define NO_FILE_DESCRIPTOR (~0U)

/* All that tells one object from another is between these. */
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
