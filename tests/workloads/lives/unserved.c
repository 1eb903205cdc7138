// SPDX-License-Identifier: MIT
/*
 * Thread that sleeps with its stack pointer in memory that never answers. The command line
 * lies in such memory, too. The first argument chooses the memory: "userfaultfd", which no
 * thread serves, or "fuse", a private mapping of a file whose server never answers a read. The
 * program needs root, or a kernel that allows other users to do this.
 */
#define _GNU_SOURCE
#include "fuse.h"

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

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

static char *map_fuse(void)
{
	struct fuse_file unserved = { .size = SIZE };
	char folder[] = "/tmp/unserved-XXXXXX";
	char path[64];
	char *memory;
	int file;

	mount_file(folder, 0, &unserved);
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

/* Sleeps for ever. Touches no stack after the stack pointer is in @memory. */
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
