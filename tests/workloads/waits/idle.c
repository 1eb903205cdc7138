// SPDX-License-Identifier: MIT
/*
 * Threads with known times in which they have work, and in which they have none.
 *
 * usage: idle WHAT BUSY [SECONDS]
 * WHAT is the scenario. BUSY is the share of the time, in %, for which the working thread
 * works. Without SECONDS the program runs for ever.
 *
 *   pool      workers wait at a condition variable for work that a source gives by the clock
 *   server    a server waits in epoll for requests that a client sends by the clock over TCP
 *   pipeline  a source writes to a pipe by the clock; the next threads read, work, and write
 *   cron      a thread works by the clock, and asks another thread over pipes in between
 *   disk      as cron, but the other thread only sleeps, and all times are 20 times as long
 *   futures   a thread asks a worker by the clock, and waits for the result
 *   births    a thread starts another thread by the clock, and waits for its result
 *
 * A thread that has work and waits for another one is in a function named await_…. All other
 * waits are for new work, or for a time.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "workload.h"

static uint64_t period_ns = 10 * NS_PER_MS, busy_ns;

static void work(void)
{
	uint64_t end = now_ns() + busy_ns;

	while (now_ns() < end)
		;
}

/* Waits until the next full period. */
static void wait_for_tick(void)
{
	sleep_ns(period_ns - now_ns() % period_ns);
}

static void take(int fd)
{
	char byte;

	check(read(fd, &byte, 1) != 1, "read");
}

static void give(int fd)
{
	check(write(fd, "x", 1) != 1, "write");
}

/* Counter for which threads wait. */
struct queue {
	pthread_mutex_t mutex;
	pthread_cond_t filled;
	int length;
};

static struct queue jobs = { PTHREAD_MUTEX_INITIALIZER,
			     PTHREAD_COND_INITIALIZER, 0 };
static struct queue results = { PTHREAD_MUTEX_INITIALIZER,
				PTHREAD_COND_INITIALIZER, 0 };

static void put(struct queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->length++;
	pthread_cond_signal(&queue->filled);
	pthread_mutex_unlock(&queue->mutex);
}

static void get(struct queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	while (!queue->length)
		pthread_cond_wait(&queue->filled, &queue->mutex);
	queue->length--;
	pthread_mutex_unlock(&queue->mutex);
}

static NOINLINE void wait_for_job(void)
{
	get(&jobs);
}

static NOINLINE void await_result(void)
{
	get(&results);
	asm volatile("");
}

static void *source(void *unused)
{
	(void)unused;
	name_thread("i_source");
	for (;;) {
		wait_for_tick();
		put(&jobs);
	}
	return NULL;
}

static void *worker(void *answers)
{
	name_thread("i_worker");
	for (;;) {
		wait_for_job();
		work();
		if (answers)
			put(&results);
	}
	return NULL;
}

static void *one_job(void *unused)
{
	(void)unused;
	name_thread("i_child");
	work();
	put(&results);
	return NULL;
}

static void *asker(void *bears)
{
	name_thread("i_asker");
	for (;;) {
		wait_for_tick();
		if (bears)
			check(pthread_detach(start_thread_of(one_job, NULL)),
			      "pthread_detach");
		else
			put(&jobs);
		await_result();
	}
	return NULL;
}

static struct sockaddr_in address;
static int listener;

static void *server(void *unused)
{
	struct epoll_event event = { .events = EPOLLIN };
	int queue = epoll_create1(0), client = -1;
	char request;

	(void)unused;
	name_thread("i_server");
	check(epoll_ctl(queue, EPOLL_CTL_ADD, listener, &event), "epoll_ctl");
	for (;;) {
		check(epoll_wait(queue, &event, 1, -1) != 1, "epoll_wait");
		if (client < 0) {
			client = accept(listener, NULL, NULL);
			event.data.fd = client;
			check(epoll_ctl(queue, EPOLL_CTL_ADD, client, &event),
			      "epoll_ctl");
			continue;
		}
		check(recv(client, &request, 1, 0) != 1, "recv");
		work();
		check(send(client, "x", 1, 0) != 1, "send");
	}
	return NULL;
}

static NOINLINE void await_reply(int fd)
{
	char reply;

	check(recv(fd, &reply, 1, 0) != 1, "recv");
}

static void *client(void *unused)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), now = 1;

	(void)unused;
	name_thread("i_client");
	check(connect(fd, (void *)&address, sizeof(address)), "connect");
	check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &now, sizeof(now)),
	      "setsockopt");
	for (;;) {
		wait_for_tick();
		check(send(fd, "x", 1, 0) != 1, "send");
		await_reply(fd);
	}
	return NULL;
}

static void start_server(void)
{
	int tries = 0;

	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	/* A server chooses its port itself. */
	do
		address.sin_port = htons(10000 + getpid() % 10000 + tries);
	while (bind(listener, (void *)&address, sizeof(address)) &&
	       ++tries < 100);
	check(listen(listener, 16), "listen");
	start_thread_of(server, NULL);
	start_thread_of(client, NULL);
}

static int first_pipe[2], second_pipe[2];

static void *first(void *unused)
{
	(void)unused;
	name_thread("i_first");
	for (;;) {
		wait_for_tick();
		give(first_pipe[1]);
	}
	return NULL;
}

static void *second(void *unused)
{
	(void)unused;
	name_thread("i_second");
	for (;;) {
		take(first_pipe[0]);
		work();
		give(second_pipe[1]);
	}
	return NULL;
}

static void *third(void *unused)
{
	(void)unused;
	name_thread("i_third");
	for (;;)
		take(second_pipe[0]);
	return NULL;
}

static NOINLINE void await_backend(void)
{
	take(second_pipe[0]);
	asm volatile("");
}

static void *cron(void *unused)
{
	(void)unused;
	name_thread("i_cron");
	for (;;) {
		wait_for_tick();
		give(first_pipe[1]);
		await_backend();
	}
	return NULL;
}

static NOINLINE void await_disk(void)
{
	sleep_ns(busy_ns);
	asm volatile("");
}

static void *backend(void *sleeps)
{
	name_thread("i_backend");
	for (;;) {
		take(first_pipe[0]);
		if (sleeps)
			await_disk();
		else
			work();
		give(second_pipe[1]);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (argc < 3)
		return 2;
	if (!strcmp(what, "disk"))
		period_ns *= 20;
	busy_ns = period_ns / 100 * strtoull(argv[2], NULL, 10);
	check(pipe(first_pipe) || pipe(second_pipe), "pipe");
	if (!strcmp(what, "pool")) {
		start_thread_of(worker, NULL);
		start_thread_of(worker, NULL);
		start_thread_of(source, NULL);
	} else if (!strcmp(what, "disk")) {
		start_thread_of(backend, "sleeps");
		start_thread_of(cron, NULL);
	} else if (!strcmp(what, "server")) {
		start_server();
	} else if (!strcmp(what, "pipeline")) {
		start_thread_of(first, NULL);
		start_thread_of(second, NULL);
		start_thread_of(third, NULL);
	} else if (!strcmp(what, "cron")) {
		start_thread_of(backend, NULL);
		start_thread_of(cron, NULL);
	} else if (!strcmp(what, "futures")) {
		start_thread_of(worker, "answers");
		start_thread_of(asker, NULL);
	} else if (!strcmp(what, "births")) {
		start_thread_of(asker, "bears");
	} else {
		return 2;
	}
	tell("ready");
	if (argc > 3)
		return sleep(atoi(argv[3]));
	for (;;)
		pause();
}
