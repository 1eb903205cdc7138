/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The resource that the arguments of a system call name. */
#ifndef SYSTEMSCOPE_WAIT_ARGUMENT_H
#define SYSTEMSCOPE_WAIT_ARGUMENT_H

enum wait_argument {
	ARGUMENT_NONE,
	/* The first one is a file descriptor. */
	ARGUMENT_FILE,
	/* It is that of an epoll instance. */
	ARGUMENT_EPOLL,
	/* They lead to file descriptors. */
	ARGUMENT_POLLED,
	/* It is the address of a futex. */
	ARGUMENT_FUTEX,
	/* It is the ID of a child, or of a group of them. */
	ARGUMENT_CHILD,
	/* It says what the second one is the ID of. */
	ARGUMENT_ID_TYPE,
	/* There was no call, but an exception. */
	ARGUMENT_FAULT,
};

#endif
