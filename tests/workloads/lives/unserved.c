// SPDX-License-Identifier: MIT
/*
 * A thread sleeps with its stack pointer in memory that never answers, and the
 * command line lies there too. The first argument chooses the memory:
 * "userfaultfd", which nobody serves, or "fuse", a private mapping of a file
 * whose server never answers a read. Needs root, or a kernel that lets others.
 */
#define _GNU_SOURCE
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define SIZE (1UL << 20)

static char *map_userfaultfd(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(fd < 0, "userfaultfd");
	check(memory == MAP_FAILED, "mmap");
	check(ioctl(fd, UFFDIO_API, &api), "UFFDIO_API");
	range.range.start = (unsigned long)memory;
	range.range.len = SIZE;
	check(ioctl(fd, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER");
	return memory;
}

static void answer(int fd, const struct fuse_in_header *request, int error,
		   const void *body, size_t size)
{
	char message[512];
	struct fuse_out_header header = {
		.len = sizeof(header) + size,
		.error = -error,
		.unique = request->unique,
	};

	memcpy(message, &header, sizeof(header));
	if (size)
		memcpy(message + sizeof(header), body, size);
	if (write(fd, message, header.len) < 0)
		perror("answer");
}

static struct fuse_attr attributes_of(uint64_t node)
{
	struct fuse_attr attributes = {
		.ino = node,
		.nlink = 1,
		.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644,
		.size = SIZE,
	};

	return attributes;
}

/* Answers all but reads. */
static void serve(int fd)
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
		.attr = attributes_of(2),
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
			attributes.attr = attributes_of(request->nodeid);
			answer(fd, request, 0, &attributes, sizeof(attributes));
			break;
		case FUSE_OPEN:
			answer(fd, request, 0, &opened, sizeof(opened));
			break;
		case FUSE_READ:
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
			break;
		default:
			answer(fd, request, ENOSYS, NULL, 0);
		}
	}
	_exit(0);
}

static char *map_fuse(void)
{
	char folder[] = "/tmp/unserved-XXXXXX";
	char path[64], options[128];
	char *memory;
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	int file;

	check(fd < 0, "/dev/fuse");
	check(unshare(CLONE_NEWNS), "unshare");
	check(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), "private");
	check(!mkdtemp(folder), folder);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	check(mount("unserved", folder, "fuse", 0, options), "mount");
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(fd);
	}
	close(fd);
	snprintf(path, sizeof(path), "%s/file", folder);
	file = open(path, O_RDONLY | O_CLOEXEC);
	check(file < 0, path);
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	check(memory == MAP_FAILED, "mmap");
	umount2(folder, MNT_DETACH);
	rmdir(folder);
	return memory;
}

static void move_command_line(char *memory)
{
	unsigned long start = (unsigned long)memory;
	struct prctl_mm_map map = {
		.start_code = 0x400000,
		.end_code = 0x401000,
		.start_data = 0x402000,
		.end_data = 0x403000,
		.start_brk = (unsigned long)sbrk(0),
		.brk = (unsigned long)sbrk(0),
		.start_stack = (unsigned long)&map,
		.arg_start = start,
		.arg_end = start + 4096,
		.env_start = start + 4096,
		.env_end = start + 4096,
		.exe_fd = -1,
	};

	check(prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0),
	      "PR_SET_MM_MAP");
}

/* Sleeps for good, and touches no stack once it has moved there. */
static void *sleep_on(void *memory)
{
	struct timespec *duration = malloc(sizeof(*duration));
	char *middle = (char *)memory + SIZE / 2;

	name_thread("unserved");
	*duration = (struct timespec){ .tv_sec = 100000 };
#if defined(__x86_64__)
	asm volatile("mov %1, %%rdi\n\t"
		     "mov %0, %%rsp\n\t"
		     "mov %0, %%rbp\n\t"
		     "xor %%esi, %%esi\n\t"
		     "mov %2, %%eax\n\t"
		     "syscall\n\t"
		     "ud2"
		     :
		     : "r"(middle), "r"(duration), "i"(SYS_nanosleep)
		     : "rax", "rdi", "rsi", "rcx", "r11", "memory");
#elif defined(__aarch64__)
	asm volatile("mov x0, %1\n\t"
		     "mov sp, %0\n\t"
		     "mov x29, %0\n\t"
		     "mov x1, xzr\n\t"
		     "mov x8, %2\n\t"
		     "svc 0\n\t"
		     "brk 0"
		     :
		     : "r"(middle), "r"(duration), "i"(SYS_nanosleep)
		     : "x0", "x1", "x8", "memory");
#endif
	return NULL;
}

int main(int argc, char **argv)
{
	char *memory;

	(void)argc;
	if (!strcmp(argv[1], "fuse"))
		memory = map_fuse();
	else
		memory = map_userfaultfd();
	move_command_line(memory);
	start_thread_of(sleep_on, memory);
	sleep_ns(100 * NS_PER_MS);
	tell("ready");
	await_test();
}
