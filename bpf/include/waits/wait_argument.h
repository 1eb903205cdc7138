/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Kinds of resources that the arguments of a system call name. */
#ifndef SYSTEMSCOPE_WAIT_ARGUMENT_H
#define SYSTEMSCOPE_WAIT_ARGUMENT_H

enum wait_argument {
	ARGUMENT_NONE,
	/* The first argument is a file descriptor. */
	ARGUMENT_FILE,
	/* The first argument is the descriptor of an epoll instance. */
	ARGUMENT_EPOLL,
	/* The arguments are sets or lists of file descriptors. */
	ARGUMENT_POLLED,
	/* The first argument is the address of a futex. */
	ARGUMENT_FUTEX,
	/* The first argument is the ID of a child, or of a group of children. */
	ARGUMENT_CHILD,
	/* The first argument is the type of the ID in the second. */
	ARGUMENT_ID_TYPE,
	/* There are no arguments: an exception entered the kernel, not a call. */
	ARGUMENT_FAULT,
};

#endif
