// SPDX-License-Identifier: MIT
/*
 * Threads that go through a chain of functions with all kinds of frames that compilers lay
 * out. A chain ends in a wait, in a signal handler or in a computation. Without frame
 * pointers in the program, an unwind by frame pointers fails.
 *
 * usage: chains wait|hold|burn
 *   wait: goes through the chain over and over, and waits some ms at its end
 *   hold: goes through the chain once, and waits at its end for ever
 *   burn: goes through the chain over and over, without waits
 *
 * A thread's chain begins with main and main_loop, or with thread_root and thread_loop. Then
 * come the links from in_small to in_huge, rotated by the thread's number, and then the end.
 * The links of number 1 begin with in_array and end with in_small.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/epoll.h>
#include <ucontext.h>

#include "workload.h"

#if defined(__GNUC__) && !defined(__clang__)
#define LINK __attribute__((noipa))
#else
#define LINK __attribute__((noinline))
#endif
#define NORETURN __attribute__((noreturn))

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define LINKS 8

struct walk;
typedef uint64_t (*step)(struct walk *walk);

struct walk {
	const char *name;
	step end;
	unsigned int number;
	unsigned int at;
	step steps[LINKS + 1];
	volatile unsigned int salt;
	volatile int handled;
	int timer;
	int epoll;
	int pipe[2];
	uint32_t word;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
};

static uint64_t wait_ns = 3 * NS_PER_MS;
static __thread struct walk *own_walk;

ALWAYS_INLINE uint64_t go_on(struct walk *walk)
{
	return walk->steps[walk->at++](walk);
}

/* Links of the chain. Each does something after its call, so that its frame stays. */

LINK uint64_t in_small(struct walk *walk)
{
	return go_on(walk) + 1;
}

LINK uint64_t in_array(struct walk *walk)
{
	volatile unsigned char bytes[300];

	bytes[walk->salt] = 1;
	return go_on(walk) + bytes[walk->salt];
}

/* Uses an array whose size is known only at run time. */
LINK uint64_t in_vla(struct walk *walk)
{
	volatile unsigned char bytes[walk->salt + 100];

	bytes[walk->salt] = 1;
	return go_on(walk) + bytes[walk->salt];
}

/* Uses a block with a larger alignment than the ABI's, and an array of variable size. */
LINK uint64_t in_aligned(struct walk *walk)
{
	_Alignas(64) volatile unsigned char block[64];
	volatile unsigned char bytes[walk->salt + 100];

	block[walk->salt] = (unsigned char)(uintptr_t)bytes;
	bytes[walk->salt] = 1;
	return go_on(walk) + block[walk->salt] + bytes[walk->salt];
}

/* Uses a block with a larger alignment, and arguments on the caller's side of the gap. */
LINK uint64_t with_many(struct walk *walk, uint64_t b, uint64_t c, uint64_t d,
			uint64_t e, uint64_t f, uint64_t g, uint64_t h,
			uint64_t i, uint64_t j)
{
	_Alignas(128) volatile unsigned char block[128];
	uint64_t result;

	block[walk->salt] = 1;
	result = go_on(walk);
	return result + b + c + d + e + f + g + h + i + j + block[walk->salt];
}

/* Pushes arguments, so that its frame grows for a call. */
LINK uint64_t in_many(struct walk *walk)
{
	unsigned int salt = walk->salt;

	return 1 + with_many(walk, 1, 2, 3, 4, 5, salt + 6, salt + 7, salt + 8,
			     salt + 9);
}

LINK uint64_t after_tail(struct walk *walk)
{
	return go_on(walk) + 2;
}

/* Leaves the stack before after_tail runs, by a tail call. */
LINK uint64_t in_tail(struct walk *walk)
{
	volatile unsigned char bytes[40];

	bytes[walk->salt] = 1;
	walk->handled = bytes[walk->salt];
	return after_tail(walk);
}

/* Holds a number in every register that a callee must preserve, including rbp. */
LINK uint64_t in_saved(struct walk *walk)
{
	volatile unsigned int *salt = &walk->salt;
	uint64_t a = *salt + 1, b = *salt + 2, c = *salt + 3, d = *salt + 4;
	uint64_t e = *salt + 5, f = *salt + 6, g = *salt + 7, h = *salt + 8;
	uint64_t result = go_on(walk);

	return result + a * b + c * d + e * f + g * h;
}

LINK uint64_t in_huge(struct walk *walk)
{
	volatile unsigned char bytes[100 * 1000];

	bytes[walk->salt] = 1;
	return go_on(walk) + bytes[walk->salt];
}

static const step links[LINKS] = {
	in_small, in_array, in_vla,   in_aligned,
	in_many,  in_tail,  in_saved, in_huge,
};

/* Ends of the chain that wait. */

static struct timespec in_ns(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / NS_PER_S),
		.tv_nsec = (long)(ns % NS_PER_S),
	};
}

LINK uint64_t end_nanosleep(struct walk *walk)
{
	struct timespec left = in_ns(wait_ns);

	return (uint64_t)nanosleep(&left, NULL) + walk->salt;
}

LINK uint64_t end_read(struct walk *walk)
{
	char byte;

	return (uint64_t)read(walk->pipe[0], &byte, 1) + walk->salt;
}

LINK uint64_t end_cond_wait(struct walk *walk)
{
	pthread_mutex_lock(&walk->mutex);
	pthread_cond_wait(&walk->cond, &walk->mutex);
	pthread_mutex_unlock(&walk->mutex);
	return walk->salt;
}

LINK uint64_t end_futex(struct walk *walk)
{
	struct timespec left = in_ns(wait_ns);

	return (uint64_t)syscall(SYS_futex, &walk->word, FUTEX_WAIT_PRIVATE, 0,
				 &left, NULL, 0) +
	       walk->salt;
}

LINK uint64_t end_epoll_wait(struct walk *walk)
{
	struct epoll_event event;

	return (uint64_t)epoll_wait(walk->epoll, &event, 1,
				    (int)(wait_ns / NS_PER_MS)) +
	       walk->salt;
}

/* Ends of the chain in a signal handler. */

ALWAYS_INLINE void arm(struct walk *walk, uint64_t ns)
{
	struct itimerspec when = { .it_value.tv_nsec = (long)ns };

	raw_syscall4(SYS_timer_settime, walk->timer, 0, (long)&when, 0);
}

/* Gets a signal between any two instructions of a loop. */
LINK uint64_t end_signal(struct walk *walk)
{
	walk->handled = 0;
	arm(walk, 100 * NS_PER_US);
	while (!walk->handled)
		;
	return walk->salt;
}

/* Gets a signal in a loop, with the handler on a stack of its own. */
LINK uint64_t end_other_stack(struct walk *walk)
{
	walk->handled = 0;
	arm(walk, 100 * NS_PER_US);
	while (!walk->handled)
		;
	return walk->salt;
}

/* Gets a signal while a wrapper of libc waits. */
LINK uint64_t end_interrupted(struct walk *walk)
{
	struct timespec left = in_ns(100 * NS_PER_MS);

	arm(walk, 2 * NS_PER_MS);
	return (uint64_t)nanosleep(&left, NULL) + walk->salt;
}

/*
 * Function that faults at its first instruction. The byte before this instruction belongs to
 * another function, which has another frame.
 */
#if defined(__x86_64__)
asm(".text\n"
    ".type before_fault, @function\n"
    "before_fault:\n"
    ".cfi_startproc\n"
    "	sub $1016, %rsp\n"
    "	.cfi_def_cfa_offset 1024\n"
    "	ud2\n"
    ".cfi_endproc\n"
    ".size before_fault, . - before_fault\n"
    ".globl fault\n"
    ".type fault, @function\n"
    "fault:\n"
    ".cfi_startproc\n"
    "	ud2\n"
    "	ret\n"
    ".cfi_endproc\n"
    ".size fault, . - fault\n");

ALWAYS_INLINE void leave_fault(ucontext_t *context)
{
	context->uc_mcontext.gregs[REG_RIP] += 2;
}
#else
#error "write a function that faults for this architecture"
#endif

extern void fault(void);

LINK uint64_t end_fault(struct walk *walk)
{
	fault();
	return walk->salt;
}

LINK void in_handler(struct walk *walk)
{
	volatile unsigned char bytes[200];
	struct timespec left = in_ns(wait_ns);

	bytes[walk->salt] = 1;
	nanosleep(&left, NULL);
	walk->handled = bytes[walk->salt];
}

LINK void on_signal(int number, siginfo_t *info, void *context)
{
	(void)info;
	in_handler(own_walk);
	if (number == SIGILL)
		leave_fault(context);
}

/* Ends of the chain that use CPU time. */

LINK uint64_t burn_leaf(uint64_t seed)
{
	volatile uint64_t numbers[3] = { seed, 2, 3 };

	return numbers[seed % 3] * 7;
}

LINK uint64_t end_burn(struct walk *walk)
{
	uint64_t result = walk->salt;

	for (int turn = 0; turn < 4; turn++)
		result += burn_leaf(result);
	return result;
}

LINK uint64_t end_clock(struct walk *walk)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_nsec + walk->salt;
}

/* Roots of the chain. Their last call never returns, so none of their code follows it. */

LINK NORETURN void thread_loop(struct walk *walk)
{
	for (;;) {
		walk->at = 0;
		go_on(walk);
	}
}

LINK NORETURN void main_loop(struct walk *walk)
{
	for (;;) {
		walk->at = 0;
		go_on(walk);
	}
}

static void set_up(struct walk *walk)
{
	static const int signals[] = { SIGUSR1, SIGUSR2, SIGILL };
	struct sigaction action = { .sa_sigaction = on_signal };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID };
	stack_t other = { .ss_size = 64 * 1024 };

	own_walk = walk;
	for (unsigned int n = 0; n < LINKS; n++)
		walk->steps[n] = links[(walk->number + n) % LINKS];
	walk->steps[LINKS] = walk->end;
	check(pipe(walk->pipe), "pipe");
	walk->epoll = epoll_create1(0);
	check(walk->epoll < 0, "epoll_create1");
	check(pthread_mutex_init(&walk->mutex, NULL), "pthread_mutex_init");
	check(pthread_cond_init(&walk->cond, NULL), "pthread_cond_init");

	for (unsigned int n = 0; n < 3; n++) {
		action.sa_flags = SA_SIGINFO;
		if (signals[n] == SIGUSR2)
			action.sa_flags |= SA_ONSTACK;
		check(sigaction(signals[n], &action, NULL), "sigaction");
	}
	other.ss_sp = malloc(other.ss_size);
	check(!other.ss_sp || sigaltstack(&other, NULL), "sigaltstack");
	event.sigev_signo = walk->end == end_other_stack ? SIGUSR2 : SIGUSR1;
	event.sigev_notify_thread_id = (int)syscall(SYS_gettid);
	check(raw_syscall4(SYS_timer_create, CLOCK_MONOTONIC, (long)&event,
			   (long)&walk->timer, 0) != 0,
	      "timer_create");
}

LINK void *thread_root(void *argument)
{
	struct walk *walk = argument;

	name_thread(walk->name);
	set_up(walk);
	thread_loop(walk);
}

static struct walk waiting[] = {
	{ .name = "nanosleep", .end = end_nanosleep },
	{ .name = "read", .end = end_read },
	{ .name = "cond_wait", .end = end_cond_wait },
	{ .name = "futex", .end = end_futex },
	{ .name = "epoll_wait", .end = end_epoll_wait },
	{ .name = "signal", .end = end_signal },
	{ .name = "other_stack", .end = end_other_stack },
	{ .name = "interrupted", .end = end_interrupted },
	{ .name = "fault", .end = end_fault },
};

static struct walk burning[] = {
	{ .name = "burn", .end = end_burn },
	{ .name = "clock", .end = end_clock },
};

/* Ends the waits that another thread must end. */
static void *wake(void *unused)
{
	(void)unused;
	name_thread("waker");
	for (;;) {
		sleep_ns(wait_ns);
		for (size_t n = 0; n < sizeof(waiting) / sizeof(*waiting);
		     n++) {
			if (waiting[n].end == end_read && waiting[n].pipe[1])
				check(write(waiting[n].pipe[1], "", 1) != 1,
				      "write");
			if (waiting[n].end == end_cond_wait)
				pthread_cond_signal(&waiting[n].cond);
		}
	}
	return NULL;
}

static void *leave_with_input(void *unused)
{
	(void)unused;
	name_thread("leaver");
	for (;;)
		await_test();
	return NULL;
}

static void start(struct walk *walks, size_t count)
{
	for (size_t n = 0; n < count; n++) {
		walks[n].number = (unsigned int)n + 1;
		start_thread_of(thread_root, &walks[n]);
	}
}

int main(int argc, char **argv)
{
	struct walk own = { .name = "main", .end = end_nanosleep };
	const char *mode = argc > 1 ? argv[1] : "wait";

	if (strcmp(mode, "hold") == 0)
		wait_ns = 1000 * NS_PER_S;
	start_thread_of(leave_with_input, NULL);
	if (strcmp(mode, "burn") == 0) {
		wait_ns = NS_PER_S;
		own.end = end_burn;
		start(burning, sizeof(burning) / sizeof(*burning));
	} else {
		start(waiting, sizeof(waiting) / sizeof(*waiting));
	}
	/* After this sleep all threads wait, so the waker may begin to wake them. */
	sleep_ns(100 * NS_PER_MS);
	start_thread_of(wake, NULL);
	set_up(&own);
	tell("ready");
	main_loop(&own);
}
