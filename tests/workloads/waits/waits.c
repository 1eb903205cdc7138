// SPDX-License-Identifier: MIT
/*
 * Waits of many kinds, each at another place in the kernel, as often as possible. Threads wait
 * for locks, timers, pipes, sockets, files, children, memory and signals. Threads also wait
 * for a CPU, in user space and within the kernel.
 *
 * usage: waits
 * The program begins when the test sends a line, and runs until the test is gone.
 */
#define _GNU_SOURCE
#include "workload.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

/* Work that a thread repeats for ever. */
typedef void turn(void *argument);

struct endless {
	turn *turn;
	void *argument;
};

static void *go_on(void *argument)
{
	struct endless endless = *(struct endless *)argument;

	free(argument);
	for (;;)
		endless.turn(endless.argument);
	return NULL;
}

static void begin(turn *turn, void *argument)
{
	struct endless *endless = malloc(sizeof(*endless));

	check(!endless, "malloc");
	*endless = (struct endless){ .turn = turn, .argument = argument };
	start_thread_of(go_on, endless);
}

/* Two ends between which a byte goes back and forth. */
struct ends {
	int own;
	int other;
	/* Waits until a read from @end does not block. */
	void (*await)(int end);
};

static void pass_on(void *argument)
{
	struct ends *ends = argument;
	uint64_t word = 1;

	ends->await(ends->own);
	/*
	 * A read from an eventfd needs eight bytes. Other reads return the bytes that are
	 * there.
	 */
	if (read(ends->own, &word, sizeof(word)) > 0)
		check(write(ends->other, &word, sizeof(word)) < 0, "write");
}

static void in_read(int end)
{
}

static void in_poll(int end)
{
	struct pollfd wanted = { .fd = end, .events = POLLIN };

	poll(&wanted, 1, -1);
}

static void in_poll_for_a_while(int end)
{
	struct pollfd wanted = { .fd = end, .events = POLLIN };

	while (!poll(&wanted, 1, 1))
		;
}

static void in_select(int end)
{
	fd_set wanted;

	FD_ZERO(&wanted);
	FD_SET(end, &wanted);
	select(end + 1, &wanted, NULL, NULL, NULL);
}

static void in_epoll(int end)
{
	static _Thread_local int set = -1;
	struct epoll_event event = { .events = EPOLLIN };

	if (set < 0) {
		set = epoll_create1(0);
		check(epoll_ctl(set, EPOLL_CTL_ADD, end, &event), "epoll_ctl");
	}
	epoll_wait(set, &event, 1, -1);
}

/* Starts two threads. @there leads to the first thread, @back to the second. */
static void pass_to_and_fro(int there[2], int back[2], void (*await)(int end))
{
	static struct ends ends[64];
	static int count;
	uint64_t word = 1;

	ends[count] = (struct ends){ there[0], back[1], await };
	begin(pass_on, &ends[count++]);
	ends[count] = (struct ends){ back[0], there[1], await };
	begin(pass_on, &ends[count++]);
	check(write(there[1], &word, sizeof(word)) < 0, "write");
}

static void pass_through_pipes(void (*await)(int end))
{
	int there[2], back[2];

	check(pipe(there) || pipe(back), "pipe");
	pass_to_and_fro(there, back, await);
}

static void pass_through_sockets(int kind, void (*await)(int end))
{
	int ends[2];

	check(socketpair(AF_UNIX, kind, 0, ends), "socketpair");
	pass_to_and_fro((int[]){ ends[0], ends[1] },
			(int[]){ ends[1], ends[0] }, await);
}

static void pass_through_events(void)
{
	int there = eventfd(0, 0), back = eventfd(0, 0);

	check(there < 0 || back < 0, "eventfd");
	pass_to_and_fro((int[]){ there, there }, (int[]){ back, back },
			in_read);
}

static void pass_through_tcp(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), one, other;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	check(bind(listener, (struct sockaddr *)&address, length), "bind");
	check(listen(listener, 1), "listen");
	getsockname(listener, (struct sockaddr *)&address, &length);
	one = socket(AF_INET, SOCK_STREAM, 0);
	check(connect(one, (struct sockaddr *)&address, length), "connect");
	other = accept(listener, NULL, NULL);
	pass_to_and_fro((int[]){ one, other }, (int[]){ other, one }, in_read);
}

/* Writes more at once than the pipe can hold, so the pipe is always full or empty. */
static void fill(void *argument)
{
	static const char many[1 << 17];

	check(write(*(int *)argument, many, sizeof(many)) < 0, "write");
}

static void drain(void *argument)
{
	char few[3000];

	check(read(*(int *)argument, few, sizeof(few)) < 0, "read");
}

static void nap(void *argument)
{
	sleep_ns(*(uint64_t *)argument);
}

static void nap_by_the_clock(void *argument)
{
	struct timespec while_ = { .tv_nsec = 100 * NS_PER_US };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &while_, NULL);
}

static void await_timer(void *argument)
{
	struct itimerspec soon = { .it_value.tv_nsec = 70 * NS_PER_US };
	uint64_t times;

	timerfd_settime(*(int *)argument, 0, &soon, NULL);
	check(read(*(int *)argument, &times, sizeof(times)) < 0, "read");
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;

static void hold(void *argument)
{
	pthread_mutex_lock(&lock);
	sched_yield();
	pthread_mutex_unlock(&lock);
}

static void take_turns(void *argument)
{
	struct timespec soon;

	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_sec++;
	pthread_mutex_lock(&lock);
	pthread_cond_signal(&turned);
	pthread_cond_timedwait(&turned, &lock, &soon);
	pthread_mutex_unlock(&lock);
}

static void raise_a_child(void *argument)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
}

static void wait_for_a_program(void *argument)
{
	pid_t child = vfork();

	if (!child) {
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
}

static void await_signal(void *argument)
{
	struct timespec soon = { .tv_nsec = 200 * NS_PER_US };
	sigset_t none;

	sigemptyset(&none);
	sigaddset(&none, SIGUSR2);
	sigtimedwait(&none, NULL, &soon);
}

static void take_file(void *argument)
{
	int file = *(int *)argument;

	flock(file, LOCK_EX);
	sched_yield();
	flock(file, LOCK_UN);
}

/* Competes with other threads for the process's list of mappings. */
static void map_and_touch(void *argument)
{
	const size_t size = 64 << 12;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(memory == MAP_FAILED, "mmap");
	for (size_t at = 0; at < size; at += 1 << 12)
		memory[at] = 1;
	munmap(memory, size);
}

/* Makes the kernel touch the mapping. */
static void map_and_have_touched(void *argument)
{
	const size_t size = 16 << 12;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(memory == MAP_FAILED, "mmap");
	check(read(*(int *)argument, memory, size) < 0, "read");
	munmap(memory, size);
}

static void write_to_disk(void *argument)
{
	char few[5000] = { 1 };

	check(pwrite(*(int *)argument, few, sizeof(few), 0) < 0, "pwrite");
	fsync(*(int *)argument);
	sleep_ns(NS_PER_MS);
}

static void compute(void *argument)
{
	static _Thread_local volatile uint64_t sum;

	for (int i = 0; i < 100000; i++)
		sum += i;
}

/* Stays in the kernel for long. Other threads take its CPU there. */
static void copy_zeros(void *argument)
{
	static _Thread_local char zeros[1 << 20];

	check(read(*(int *)argument, zeros, sizeof(zeros)) < 0, "read");
}

static void yield(void *argument)
{
	sched_yield();
}

static int scratch_file(void)
{
	FILE *file = tmpfile();

	check(!file, "tmpfile");
	return fileno(file);
}

int main(void)
{
	static uint64_t short_ns = 50 * NS_PER_US, longer_ns = 300 * NS_PER_US;
	static int full[2], zeros, timer, locked, written;
	sigset_t usr2;

	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	sigprocmask(SIG_BLOCK, &usr2, NULL);
	zeros = open("/dev/zero", O_RDONLY);
	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	check(zeros < 0 || timer < 0 || pipe(full), "open");
	locked = scratch_file();
	written = scratch_file();
	tell("ready");
	await_test();

	pass_through_pipes(in_read);
	pass_through_pipes(in_poll);
	pass_through_pipes(in_poll_for_a_while);
	pass_through_pipes(in_select);
	pass_through_pipes(in_epoll);
	pass_through_sockets(SOCK_STREAM, in_read);
	pass_through_sockets(SOCK_DGRAM, in_epoll);
	pass_through_events();
	pass_through_tcp();
	begin(fill, &full[1]);
	begin(drain, &full[0]);
	begin(nap, &short_ns);
	begin(nap, &longer_ns);
	begin(nap_by_the_clock, NULL);
	begin(await_timer, &timer);
	begin(await_signal, NULL);
	for (int i = 0; i < 2; i++) {
		begin(hold, NULL);
		begin(take_turns, NULL);
		begin(map_and_touch, NULL);
		begin(map_and_have_touched, &zeros);
	}
	begin(raise_a_child, NULL);
	begin(wait_for_a_program, NULL);
	begin(take_file, &locked);
	begin(write_to_disk, &written);
	begin(compute, NULL);
	begin(copy_zeros, &zeros);
	begin(yield, NULL);
	leave_with_test(NULL);
}
