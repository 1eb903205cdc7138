// SPDX-License-Identifier: MIT
/*
 * Workers that the kernel starts in this process for io_uring: threads without a user stack.
 * iou-wrk-TID and iou-sqp-TID work for the thread TID.
 *
 * usage: workers
 *
 *   idle   gives its worker one request, and no more
 *   busy   gives its worker a request every 10 ms
 *   late   gives its worker a request every 10 ms after the test sends a line
 *   queue  iou-sqp-TID takes a request from its queue every 50 ms, and then polls for more
 *          for 1 ms
 */
#define _GNU_SOURCE
#include <linux/io_uring.h>

#include "workload.h"

#define WAIT_NS (10 * NS_PER_MS)
#define PAGE 4096

struct ring {
	int fd;
	char *queues;
	struct io_uring_sqe *request;
	struct io_uring_params parameters;
};

static _Atomic uint32_t may_begin;
static _Atomic uint32_t working;

static void open_ring(struct ring *ring, uint32_t flags)
{
	ring->parameters = (struct io_uring_params){
		.flags = flags,
		.sq_thread_idle = 1,
	};
	ring->fd = syscall(SYS_io_uring_setup, 1, &ring->parameters);
	check(ring->fd < 0, "io_uring_setup");
	ring->queues = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
			    ring->fd, IORING_OFF_SQ_RING);
	ring->request = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
			     ring->fd, IORING_OFF_SQES);
	check(ring->queues == MAP_FAILED || ring->request == MAP_FAILED,
	      "mmap");
}

/* Waits for the result of a request without work. */
static void request(struct ring *ring, uint8_t flags, unsigned int how)
{
	*ring->request = (struct io_uring_sqe){
		.opcode = IORING_OP_NOP,
		.flags = flags,
	};
	++*(_Atomic uint32_t *)(ring->queues + ring->parameters.sq_off.tail);
	check(syscall(SYS_io_uring_enter, ring->fd, 1, 1,
		      IORING_ENTER_GETEVENTS | how, NULL, 0) != 1,
	      "io_uring_enter");
	++*(_Atomic uint32_t *)(ring->queues + ring->parameters.cq_off.head);
}

static void begin(const char *name)
{
	name_thread(name);
	tell("%s %ld", name, syscall(SYS_gettid));
}

static void *idle(void *unused)
{
	static struct ring ring;

	(void)unused;
	begin("idle");
	open_ring(&ring, 0);
	request(&ring, IOSQE_ASYNC, 0);
	atomic_fetch_add(&working, 1);
	for (;;)
		pause();
	return NULL;
}

static void keep_busy(struct ring *ring)
{
	open_ring(ring, 0);
	for (;;) {
		request(ring, IOSQE_ASYNC, 0);
		atomic_fetch_add(&working, 1);
		sleep_ns(WAIT_NS);
	}
}

static void *busy(void *unused)
{
	static struct ring ring;

	(void)unused;
	begin("busy");
	keep_busy(&ring);
	return NULL;
}

static void *late(void *unused)
{
	static struct ring ring;

	(void)unused;
	begin("late");
	wait_while(&may_begin, 0);
	keep_busy(&ring);
	return NULL;
}

static void *queue(void *unused)
{
	static struct ring ring;

	(void)unused;
	begin("queue");
	open_ring(&ring, IORING_SETUP_SQPOLL);
	for (;;) {
		request(&ring, 0, IORING_ENTER_SQ_WAKEUP);
		atomic_fetch_add(&working, 1);
		sleep_ns(5 * WAIT_NS);
	}
	return NULL;
}

int main(void)
{
	start_thread_of(idle, NULL);
	start_thread_of(late, NULL);
	start_thread_of(busy, NULL);
	start_thread_of(queue, NULL);
	while (atomic_load(&working) < 10)
		sleep_ns(WAIT_NS);
	tell("ready");
	await_test();
	set_and_wake(&may_begin, 1);
	return leave_with_test(NULL) != NULL;
}
