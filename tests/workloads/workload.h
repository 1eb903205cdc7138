/* SPDX-License-Identifier: MIT */
/*
 * Code that the workloads share: system calls without libc, and the messages from and to the
 * test over stdin and stdout.
 *
 * libc's wrappers have no frame pointer, so an unwind by frame pointers from inside a wrapper
 * loses the caller. Inlined system calls leave every function of the workload on the stack.
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE static inline __attribute__((always_inline))

#define NS_PER_US 1000ULL
#define NS_PER_MS 1000000ULL
#define NS_PER_S 1000000000ULL

#if defined(__x86_64__)

ALWAYS_INLINE long raw_syscall4(long number, long a, long b, long c, long d)
{
	register long r10 asm("r10") = d;
	long result;

	asm volatile("syscall"
		     : "=a"(result)
		     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
		     : "rcx", "r11", "memory");
	return result;
}

#elif defined(__aarch64__)

ALWAYS_INLINE long raw_syscall4(long number, long a, long b, long c, long d)
{
	register long x8 asm("x8") = number;
	register long x0 asm("x0") = a;
	register long x1 asm("x1") = b;
	register long x2 asm("x2") = c;
	register long x3 asm("x3") = d;

	asm volatile("svc 0"
		     : "+r"(x0)
		     : "r"(x8), "r"(x1), "r"(x2), "r"(x3)
		     : "memory");
	return x0;
}

#else
#error "write raw_syscall4 for this architecture"
#endif

ALWAYS_INLINE void sleep_ns(uint64_t ns)
{
	struct timespec left = {
		.tv_sec = (time_t)(ns / NS_PER_S),
		.tv_nsec = (long)(ns % NS_PER_S),
	};

	raw_syscall4(SYS_nanosleep, (long)&left, (long)&left, 0, 0);
}

#ifndef __cplusplus
#include <stdatomic.h>

ALWAYS_INLINE void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
	raw_syscall4(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, value, 0);
}

/* Returns the number of woken threads. */
ALWAYS_INLINE long futex_wake(_Atomic uint32_t *word, int threads)
{
	return raw_syscall4(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, threads,
			    0);
}

/* Waits until *word differs from @value. */
ALWAYS_INLINE void wait_while(_Atomic uint32_t *word, uint32_t value)
{
	while (atomic_load(word) == value)
		futex_wait(word, value);
}

/* Returns the number of woken threads. */
ALWAYS_INLINE long set_and_wake(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store(word, value);
	return futex_wake(word, INT32_MAX);
}

#endif /* !__cplusplus */

static inline uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static inline void name_thread(const char *name)
{
	prctl(PR_SET_NAME, name, 0, 0, 0);
}

static inline void check(int failed, const char *what)
{
	if (failed) {
		perror(what);
		exit(1);
	}
}

static inline pthread_t start_thread_of(void *(*body)(void *), void *argument)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, body, argument);

	if (error) {
		fprintf(stderr, "pthread_create: %s\n", strerror(error));
		exit(1);
	}
	return thread;
}

/* Prints a line for the test, whole even if several threads print. */
#define tell(...)                                                              \
	do {                                                                   \
		flockfile(stdout);                                             \
		printf(__VA_ARGS__);                                           \
		putchar('\n');                                                 \
		fflush(stdout);                                                \
		funlockfile(stdout);                                           \
	} while (0)

/* Blocks until the test sends a line. Exits when the test is gone. */
static inline void await_test(void)
{
	char byte;

	do {
		if (raw_syscall4(SYS_read, STDIN_FILENO, (long)&byte, 1, 0) !=
		    1)
			_exit(0);
	} while (byte != '\n');
}

/*
 * Body of a thread that ends the process at the test's next line, or when the test is gone.
 * The thread has the name @name, if it is not NULL.
 */
static inline void *leave_with_test(void *name)
{
	if (name)
		name_thread((const char *)name);
	await_test();
	_exit(0);
}

static inline unsigned long argument_or(int argc, char **argv, int index,
					unsigned long fallback)
{
	return argc > index ? strtoul(argv[index], NULL, 10) : fallback;
}

#endif
