// SPDX-License-Identifier: MIT
/*
 * Threads with one kind of wait each, and with the name of this kind. They wait 10 ms at a
 * time until the test is gone. Threads named k_… make them wait.
 *
 * usage: reasons [FOLDER] (FOLDER is for a file; without it there are no waits for a disk)
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "workload.h"

/* P_PIDFD of include/uapi/linux/wait.h, for older C libraries. */
#ifndef P_PIDFD
#define P_PIDFD 3
#endif

#define WAIT_NS (10 * NS_PER_MS)
#define PAGE 4096
#define FILE_BYTES (64UL << 20)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t pi_mutex;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static const char *folder;

/* Sources of bytes. The driver writes to each source, and one thread reads from it. */
enum source {
	PIPE,
	UNIX,
	DGRAM,
	TCP,
	UDP,
	POLLED,
	SELECTED,
	EPOLLED,
	SOURCES,
};

static int reads[SOURCES], writes[SOURCES];
static int event, listener, queue, child_of_pidfd, both_ends;
static struct sockaddr_in address;

static void nap(void)
{
	sleep_ns(WAIT_NS);
}

/* Returns a socket with a port of its own. A stream socket listens on its port. */
static int bound(int type, struct sockaddr_in *to)
{
	socklen_t length = sizeof(*to);
	int fd = socket(AF_INET, type, 0);

	*to = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	check(fd < 0 || bind(fd, (void *)to, length), "bind");
	check(getsockname(fd, (void *)to, &length), "getsockname");
	if (type == SOCK_STREAM)
		check(listen(fd, 16), "listen");
	return fd;
}

static int port_of(int fd)
{
	struct sockaddr_in own;
	socklen_t length = sizeof(own);

	check(getsockname(fd, (void *)&own, &length), "getsockname");
	return ntohs(own.sin_port);
}

static int connected(int type, const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, type, 0);

	check(fd < 0 || connect(fd, (const void *)to, sizeof(*to)), "connect");
	return fd;
}

static void open_sources(void)
{
	struct sockaddr_in to;
	int pair[2], accepting;
	char path[64];

	for (int at = 0; at < SOURCES; at++) {
		if (at == UNIX || at == DGRAM)
			check(socketpair(AF_UNIX,
					 at == UNIX ? SOCK_STREAM : SOCK_DGRAM,
					 0, pair),
			      "socketpair");
		else
			check(pipe(pair), "pipe");
		reads[at] = pair[0];
		writes[at] = pair[1];
	}
	accepting = bound(SOCK_STREAM, &to);
	writes[TCP] = connected(SOCK_STREAM, &to);
	reads[TCP] = accept(accepting, NULL, NULL);
	check(reads[TCP] < 0, "accept");
	reads[UDP] = bound(SOCK_DGRAM, &to);
	writes[UDP] = connected(SOCK_DGRAM, &to);
	listener = bound(SOCK_STREAM, &address);
	check(pipe(pair), "pipe");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", pair[0]);
	both_ends = open(path, O_RDWR);
	check(both_ends < 0, path);
	event = eventfd(0, 0);
	queue = msgget(IPC_PRIVATE, 0600 | IPC_CREAT);
	check(event < 0 || queue < 0, "eventfd, msgget");
}

static void take(enum source source)
{
	char byte;

	check(read(reads[source], &byte, 1) != 1, "read");
}

/* Holds what other threads want, nearly all of the time. */
static void *hold(void *unused)
{
	(void)unused;
	name_thread("k_holder");
	for (;;) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_lock(&pi_mutex);
		pthread_rwlock_wrlock(&rwlock);
		nap();
		pthread_rwlock_unlock(&rwlock);
		pthread_mutex_unlock(&pi_mutex);
		pthread_mutex_unlock(&mutex);
		sleep_ns(200 * NS_PER_US);
	}
	return NULL;
}

/* Runs in a process of its own, because file locks belong to processes. */
static void hold_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	name_thread("k_filelock");
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	for (;;) {
		flock(fd, LOCK_EX);
		nap();
		flock(fd, LOCK_UN);
		sleep_ns(NS_PER_MS);
	}
}

static void *drive(void *unused)
{
	const struct message {
		long type;
		char text;
	} message = { .type = 1 };
	const uint64_t one = 1;

	(void)unused;
	name_thread("k_driver");
	for (;;) {
		nap();
		for (int at = 0; at < SOURCES; at++)
			check(write(writes[at], "x", 1) != 1, "write");
		check(write(event, &one, sizeof(one)) != sizeof(one),
		      "eventfd");
		check(msgsnd(queue, &message, sizeof(message.text), 0),
		      "msgsnd");
		close(connected(SOCK_STREAM, &address));
		sem_post(&semaphore);
		pthread_mutex_lock(&cond_mutex);
		pthread_cond_signal(&cond);
		pthread_mutex_unlock(&cond_mutex);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void wait_mutex(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static void wait_pi(void)
{
	pthread_mutex_lock(&pi_mutex);
	pthread_mutex_unlock(&pi_mutex);
}

static void wait_rwlock(void)
{
	pthread_rwlock_rdlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
}

static void wait_cond(void)
{
	pthread_mutex_lock(&cond_mutex);
	pthread_cond_wait(&cond, &cond_mutex);
	pthread_mutex_unlock(&cond_mutex);
}

static void wait_sem(void)
{
	sem_wait(&semaphore);
}

static void wait_barrier(void)
{
	pthread_barrier_wait(&barrier);
}

static void *nap_once(void *unused)
{
	name_thread("k_joined");
	nap();
	return unused;
}

static void wait_join(void)
{
	pthread_join(start_thread_of(nap_once, NULL), NULL);
}

static void wait_child(void)
{
	pid_t child = fork();

	check(child < 0, "fork");
	if (!child) {
		name_thread("k_child");
		nap();
		_exit(0);
	}
	check(waitpid(child, NULL, 0) != child, "waitpid");
}

static int open_pidfd(pid_t pid)
{
	int fd = syscall(SYS_pidfd_open, pid, 0);

	check(fd < 0, "pidfd_open");
	return fd;
}

/*
 * Forks without the lock of libc's fork(), which wait_child() may hold. Forks less often,
 * because a fork takes long on an emulated CPU.
 */
static void wait_waitid(void)
{
	pid_t child = raw_syscall4(SYS_fork, 0, 0, 0, 0);
	siginfo_t end;
	int fd;

	check(child < 0, "fork");
	if (!child) {
		name_thread("k_child");
		sleep_ns(5 * WAIT_NS);
		_exit(0);
	}
	fd = open_pidfd(child);
	check(waitid(P_PIDFD, fd, &end, WEXITED), "waitid");
	close(fd);
}

static void wait_vfork(void)
{
	pid_t child = vfork();

	check(child < 0, "vfork");
	if (!child) {
		raw_syscall4(SYS_prctl, PR_SET_NAME, (long)"k_vforked", 0, 0);
		nap();
		_exit(0);
	}
	check(waitpid(child, NULL, 0) != child, "waitpid");
}

static void wait_pipe(void)
{
	take(PIPE);
}

static void wait_unix(void)
{
	take(UNIX);
}

static void wait_dgram(void)
{
	take(DGRAM);
}

static void wait_tcp(void)
{
	take(TCP);
}

static void wait_udp(void)
{
	take(UDP);
}

static void wait_accept(void)
{
	int fd = accept(listener, NULL, NULL);

	check(fd < 0, "accept");
	close(fd);
}

static void wait_poll(void)
{
	struct pollfd polled = { .fd = reads[POLLED], .events = POLLIN };

	poll(&polled, 1, -1);
	take(POLLED);
}

static void poll_in_vain(int fd)
{
	struct pollfd polled = { .fd = fd, .events = POLLIN };

	check(poll(&polled, 1, WAIT_NS / NS_PER_MS), "poll");
}

static void wait_pidfd(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open_pidfd(child_of_pidfd);
	poll_in_vain(fd);
}

static void wait_signalfd(void)
{
	static int fd = -1;
	sigset_t set;

	if (fd < 0) {
		sigemptyset(&set);
		sigaddset(&set, SIGUSR2);
		fd = signalfd(-1, &set, 0);
		check(fd < 0, "signalfd");
	}
	poll_in_vain(fd);
}

/* Polls a file that has two wait queues. */
static void wait_both(void)
{
	poll_in_vain(both_ends);
}

static void wait_select(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(reads[SELECTED], &set);
	select(reads[SELECTED] + 1, &set, NULL, NULL, NULL);
	take(SELECTED);
}

static void wait_epoll(void)
{
	static int epoll = -1;
	struct epoll_event ready = { .events = EPOLLIN };

	if (epoll < 0) {
		epoll = epoll_create1(0);
		check(epoll_ctl(epoll, EPOLL_CTL_ADD, reads[EPOLLED], &ready),
		      "epoll_ctl");
	}
	epoll_wait(epoll, &ready, 1, -1);
	take(EPOLLED);
}

static void wait_eventfd(void)
{
	uint64_t count;

	check(read(event, &count, sizeof(count)) != sizeof(count), "eventfd");
}

static void wait_message(void)
{
	struct {
		long type;
		char text;
	} message;

	check(msgrcv(queue, &message, sizeof(message.text), 0, 0) < 0,
	      "msgrcv");
}

static void wait_timerfd(void)
{
	const struct itimerspec in = { .it_value.tv_nsec = WAIT_NS };
	static int timer = -1;
	uint64_t count;

	if (timer < 0)
		timer = timerfd_create(CLOCK_MONOTONIC, 0);
	check(timerfd_settime(timer, 0, &in, NULL), "timerfd");
	check(read(timer, &count, sizeof(count)) != sizeof(count), "timerfd");
}

static void wait_signal(void)
{
	const struct timespec patience = { .tv_nsec = WAIT_NS };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigtimedwait(&set, NULL, &patience);
}

static void wait_flock(void)
{
	static int fd = -1;
	char path[4096];

	if (fd < 0) {
		snprintf(path, sizeof(path), "%s/locked", folder);
		fd = open(path, O_RDWR | O_CREAT, 0600);
	}
	check(flock(fd, LOCK_EX), "flock");
	flock(fd, LOCK_UN);
}

static int open_file(const char *name)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	check(fd < 0, path);
	return fd;
}

static void wait_fsync(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open_file("synced");
	check(pwrite(fd, "x", 1, 0) != 1 || fsync(fd), "fsync");
}

/* Makes a file, and writes all its pages to disk. */
static int cold_file(const char *name)
{
	static __thread char page[PAGE] = { 1 };
	int fd = open_file(name);

	for (unsigned long at = 0; at < FILE_BYTES; at += PAGE)
		check(pwrite(fd, page, PAGE, at) != PAGE, "pwrite");
	check(fsync(fd), "fsync");
	return fd;
}

static void forget_pages(int fd)
{
	check(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), "fadvise");
	check(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), "fadvise");
}

static void read_cold(int fd)
{
	char byte;

	forget_pages(fd);
	for (unsigned long at = 0; at < FILE_BYTES; at += 256 * PAGE)
		check(pread(fd, &byte, 1, at) != 1, "pread");
}

static void touch_cold(int fd)
{
	volatile char *map;

	forget_pages(fd);
	map = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	check(map == MAP_FAILED, "mmap");
	madvise((void *)map, FILE_BYTES, MADV_RANDOM);
	for (unsigned long at = 0; at < FILE_BYTES; at += 256 * PAGE)
		(void)map[at];
	munmap((void *)map, FILE_BYTES);
}

static int cold_read, cold_map;

static void wait_read(void)
{
	read_cold(cold_read);
}

static void wait_fault(void)
{
	touch_cold(cold_map);
}

static const struct wait {
	const char *name;
	void (*once)(void);
} waits[] = {
	{ "r_mutex", wait_mutex },
	{ "r_pi", wait_pi },
	{ "r_rwlock", wait_rwlock },
	{ "r_cond", wait_cond },
	{ "r_sem", wait_sem },
	{ "r_barrier", wait_barrier },
	{ "r_join", wait_join },
	{ "r_child", wait_child },
	{ "r_waitid", wait_waitid },
	{ "r_vfork", wait_vfork },
	{ "r_pipe", wait_pipe },
	{ "r_unix", wait_unix },
	{ "r_dgram", wait_dgram },
	{ "r_tcp", wait_tcp },
	{ "r_udp", wait_udp },
	{ "r_accept", wait_accept },
	{ "r_poll", wait_poll },
	{ "r_pidfd", wait_pidfd },
	{ "r_both", wait_both },
	{ "r_signalfd", wait_signalfd },
	{ "r_select", wait_select },
	{ "r_epoll", wait_epoll },
	{ "r_eventfd", wait_eventfd },
	{ "r_message", wait_message },
	{ "r_sleep", nap },
	{ "r_timerfd", wait_timerfd },
	{ "r_signal", wait_signal },
};

static const struct wait disk_waits[] = {
	{ "r_flock", wait_flock },
	{ "r_fsync", wait_fsync },
	{ "r_read", wait_read },
	{ "r_fault", wait_fault },
};

static void *wait_for_good(void *argument)
{
	const struct wait *wait = argument;

	name_thread(wait->name);
	for (;;)
		wait->once();
	return NULL;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int main(int argc, char **argv)
{
	pthread_mutexattr_t inherits;
	char path[4096];

	pthread_mutexattr_init(&inherits);
	pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&pi_mutex, &inherits);
	pthread_barrier_init(&barrier, NULL, 2);
	sem_init(&semaphore, 0, 0);
	folder = argc > 1 ? argv[1] : NULL;
	open_sources();
	if (folder) {
		snprintf(path, sizeof(path), "%s/locked", folder);
		if (!fork())
			hold_file(path);
		cold_read = cold_file("read");
		cold_map = cold_file("mapped");
	}
	child_of_pidfd = fork();
	check(child_of_pidfd < 0, "fork");
	if (!child_of_pidfd) {
		name_thread("k_lasting");
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		for (;;)
			pause();
	}
	start_thread_of(leave_with_test, NULL);
	start_thread_of(hold, NULL);
	for (unsigned long at = 0; at < COUNT(waits); at++)
		start_thread_of(wait_for_good, (void *)&waits[at]);
	for (unsigned long at = 0; folder && at < COUNT(disk_waits); at++)
		start_thread_of(wait_for_good, (void *)&disk_waits[at]);
	start_thread_of(drive, NULL);
	/* Descriptors and ports on which some threads wait. */
	tell("r_pipe %d", reads[PIPE]);
	tell("r_poll %d", reads[POLLED]);
	tell("r_select %d", reads[SELECTED]);
	tell("r_both %d", both_ends);
	tell("r_pidfd %d", child_of_pidfd);
	tell("r_epoll %d", reads[EPOLLED]);
	tell("r_accept %d", ntohs(address.sin_port));
	tell("r_tcp %d", port_of(reads[TCP]));
	tell("r_udp %d", port_of(reads[UDP]));
	tell("ready");
	for (;;)
		pause();
}
