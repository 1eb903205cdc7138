// SPDX-License-Identifier: MIT
/*
 * Program with terminal escapes in all of its names. The names are of threads, its executable
 * and the executable's directory, symbols, a lock, files, FIFOs and sockets. They are also of
 * a memfd, children, arguments, and functions in its perf map.
 *
 * usage: hostile_names FOLDER
 * The program copies itself into FOLDER with symbols that no compiler makes, and executes the
 * copy there.
 */
#define _GNU_SOURCE
#include "workload.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

/* ESC, BEL, a line end, the separator of frames, U+202E, U+2028, U+009B. */
#define HOSTILE "\33]0;P\a\n;\xe2\x80\xae\xe2\x80\xa8\xc2\x9b"

/* Text in the copy's symbols. The eight bytes of in_symbols replace it. */
#define SYMBOL "QQQQQQQQ"
static const char in_symbols[] = "\33[1m\a\xe2\x80\xae";

static pthread_mutex_t lock asm("lock" SYMBOL) = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint32_t rung;

void hot(void) asm("hot" SYMBOL);

NOINLINE void hot(void)
{
	for (volatile unsigned int turn = 0; turn < 400 * 1000; turn++)
		;
	sleep_ns(5 * NS_PER_MS);
}

static void hostile_thread(void)
{
	name_thread("t\33]0;P\a\n;x");
}

static void read_from(int file)
{
	char bytes[8];

	hostile_thread();
	for (;;)
		read(file, bytes, sizeof(bytes));
}

static void *read_fifo(void *nothing)
{
	mkfifo("fifo" HOSTILE, 0600);
	read_from(open("fifo" HOSTILE, O_RDWR));
	return nothing;
}

static void *read_event(void *nothing)
{
	read_from(eventfd(0, 0));
	return nothing;
}

static void *receive(void *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	/* An abstract name begins with a NUL. */
	size_t length = 1 + strlen((char *)name + 1);
	int file = socket(AF_UNIX, SOCK_DGRAM, 0);

	memcpy(address.sun_path, name, length);
	/* The whole machine shares the abstract names. */
	length += sprintf(address.sun_path + length, "%d", getpid());
	check(bind(file, (struct sockaddr *)&address,
		   offsetof(struct sockaddr_un, sun_path) + length),
	      "bind");
	read_from(file);
	return NULL;
}

static void *lock_file(void *nothing)
{
	int file = open("locked" HOSTILE, O_CREAT | O_RDWR, 0600);

	hostile_thread();
	for (;;) {
		flock(file, LOCK_EX);
		pwrite(file, HOSTILE, sizeof(HOSTILE), 0);
		fsync(file);
		sleep_ns(NS_PER_MS);
		flock(file, LOCK_UN);
	}
	return nothing;
}

static void *take_lock(void *nothing)
{
	hostile_thread();
	for (;;) {
		pthread_mutex_lock(&lock);
		sleep_ns(3 * NS_PER_MS);
		pthread_mutex_unlock(&lock);
	}
	return nothing;
}

static void *await_children(void *nothing)
{
	hostile_thread();
	for (;;) {
		pid_t child = fork();

		if (child == 0) {
			name_thread("c\33[1m\a\n;z");
			sleep_ns(20 * NS_PER_MS);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	return nothing;
}

/* Wakes the thread named sleeper. This thread's name is the mark of a timer's interrupt. */
static void *ring(void *nothing)
{
	name_thread("[timer]");
	for (uint32_t turn = 1;; turn++) {
		sleep_ns(5 * NS_PER_MS);
		set_and_wake(&rung, turn);
	}
	return nothing;
}

static void *await_ring(void *nothing)
{
	name_thread("sleeper");
	for (;;)
		wait_while(&rung, atomic_load(&rung));
	return nothing;
}

/* Code that calls its argument. */
static const unsigned char code[] = {
	0x55,		  /* push %rbp */
	0x48, 0x89, 0xe5, /* mov %rsp,%rbp */
	0xff, 0xd7,	  /* call *%rdi */
	0x5d,		  /* pop %rbp */
	0xc3,		  /* ret */
};

/*
 * Computes in code with @name in the perf map. A line end in the name breaks the line of the
 * map.
 */
static void *run_jit(void *name)
{
	unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	FILE *map;

	hostile_thread();
	check(page == MAP_FAILED, "mmap");
	memcpy(page, code, sizeof(code));
	check(mprotect(page, 4096, PROT_READ | PROT_EXEC), "mprotect");
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "a");
	check(!map, path);
	fprintf(map, "%lx %lx %s\n", (unsigned long)page, sizeof(code),
		(char *)name);
	fclose(map);
	for (;;)
		((void (*)(void (*)(void)))page)(hot);
	return NULL;
}

/* Runs code from a memfd with a hostile name. */
static void *run_memfd(void *nothing)
{
	int file = memfd_create("memfd" HOSTILE, 0);
	void *page;

	hostile_thread();
	check(write(file, code, sizeof(code)) < 0, "write to the memfd");
	page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	check(page == MAP_FAILED, "mmap the memfd");
	for (;;)
		((void (*)(void (*)(void)))page)(hot);
	return nothing;
}

/* Executes a copy with other symbols. */
static void become_hostile(const char *folder)
{
	char *copy = malloc(1 << 20);
	int file = open("/proc/self/exe", O_RDONLY);
	long length = read(file, copy, 1 << 20);
	char *end = copy + length;

	check(length < 0, "read the executable");
	for (char *at = copy; (at = memmem(at, end - at, SYMBOL, 8)); at += 8)
		memcpy(at, in_symbols, 8);
	check(chdir(folder), folder);
	check(mkdir("folder" HOSTILE, 0755), "mkdir");
	check(chdir("folder" HOSTILE), "chdir");
	file = open("program" HOSTILE, O_CREAT | O_WRONLY, 0755);
	check(write(file, copy, length) != length, "write the copy");
	close(file);
	execl("program" HOSTILE, "program" HOSTILE, HOSTILE, "hostile", NULL);
	check(1, "execl");
}

int main(int argc, char **argv)
{
	if (argc < 3)
		become_hostile(argv[1]);

	start_thread_of(read_fifo, NULL);
	start_thread_of(read_event, NULL);
	start_thread_of(receive, "socket" HOSTILE);
	start_thread_of(receive, "\0abstract" HOSTILE);
	start_thread_of(lock_file, NULL);
	start_thread_of(lock_file, NULL);
	start_thread_of(take_lock, NULL);
	start_thread_of(take_lock, NULL);
	start_thread_of(await_children, NULL);
	start_thread_of(ring, NULL);
	start_thread_of(await_ring, NULL);
	start_thread_of(run_jit, "jit\33]0;P\a;\xe2\x80\xae");
	start_thread_of(run_jit, "[Missed User Stack]");
	start_thread_of(run_jit, "--");
	start_thread_of(run_memfd, NULL);
	hostile_thread();
	tell("ready");
	start_thread_of(leave_with_test, "leaves");
	for (;;)
		hot();
}
