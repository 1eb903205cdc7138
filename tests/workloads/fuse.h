/* SPDX-License-Identifier: MIT */
/*
 * FUSE file system with one file, which answers to any name. Only one user may access it: not
 * even root may. Its mount is in a mount namespace of the caller's own.
 */
#ifndef FUSE_H
#define FUSE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "workload.h"

/* The file of the file system. If @bytes is NULL, no read is ever answered. */
struct fuse_file {
	const char *bytes;
	size_t size;
};

static void answer(int fd, const struct fuse_in_header *request, int error,
		   const void *body, size_t size)
{
	struct fuse_out_header header = {
		.len = sizeof(header) + size,
		.error = -error,
		.unique = request->unique,
	};
	struct iovec parts[] = {
		{ .iov_base = &header, .iov_len = sizeof(header) },
		{ .iov_base = (void *)body, .iov_len = size },
	};

	if (writev(fd, parts, size ? 2 : 1) < 0)
		perror("answer");
}

static struct fuse_attr attributes_of(uint64_t node, size_t size)
{
	struct fuse_attr attributes = {
		.ino = node,
		.nlink = 1,
		.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0755,
		.size = size,
	};

	return attributes;
}

static void answer_read(int fd, const struct fuse_in_header *request,
			const struct fuse_file *file)
{
	const struct fuse_read_in *read = (const void *)(request + 1);
	size_t offset = read->offset < file->size ? read->offset : file->size;
	size_t size = file->size - offset;

	if (file->bytes)
		answer(fd, request, 0, file->bytes + offset,
		       size < read->size ? size : read->size);
}

static void serve(int fd, const struct fuse_file *file)
{
	static char message[1 << 18];
	struct fuse_in_header *request = (void *)message;
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.minor = 31,
		.max_write = 4096,
	};
	struct fuse_entry_out entry = {
		.nodeid = 2,
		.entry_valid = 3600,
		.attr_valid = 3600,
		.attr = attributes_of(2, file->size),
	};
	struct fuse_attr_out attributes = { .attr_valid = 3600 };
	struct fuse_open_out opened = {};

	while (read(fd, message, sizeof(message)) > 0) {
		switch (request->opcode) {
		case FUSE_INIT:
			answer(fd, request, 0, &init, sizeof(init));
			break;
		case FUSE_LOOKUP:
			answer(fd, request, 0, &entry, sizeof(entry));
			break;
		case FUSE_GETATTR:
			attributes.attr =
				attributes_of(request->nodeid, file->size);
			answer(fd, request, 0, &attributes, sizeof(attributes));
			break;
		case FUSE_OPEN:
			answer(fd, request, 0, &opened, sizeof(opened));
			break;
		case FUSE_READ:
			answer_read(fd, request, file);
			break;
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
			break;
		default:
			answer(fd, request, ENOSYS, NULL, 0);
		}
	}
	_exit(0);
}

/*
 * Mounts a file system of @user with one file on a new directory. A child process serves it as
 * long as the caller lives. @folder ends in XXXXXX.
 */
static void mount_file(char *folder, unsigned int user,
		       const struct fuse_file *file)
{
	char options[128];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	check(fd < 0, "/dev/fuse");
	check(unshare(CLONE_NEWNS), "unshare");
	check(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), "private");
	check(!mkdtemp(folder), folder);
	check(chmod(folder, 0755), folder);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=%u,group_id=%u", fd, user, user);
	check(mount("fuse", folder, "fuse", 0, options), "mount");
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(fd, file);
	}
	close(fd);
}

#endif
