// SPDX-License-Identifier: MIT
/*
 * 32-bit program with no code but its own, which computes and sleeps in turn for a minute. It
 * must be built with -m32 -static -nostdlib -fno-pic -fno-stack-protector; otherwise it does
 * nothing.
 */
#ifdef __i386__

/* Numbers of arch/x86/entry/syscalls/syscall_32.tbl. */
#define CALL_WRITE 4
#define CALL_ALARM 27
#define CALL_NANOSLEEP 162

static long call(long number, long a, long b, long c)
{
	long result;

	asm volatile("int $0x80"
		     : "=a"(result)
		     : "a"(number), "b"(a), "c"(b), "d"(c)
		     : "memory");
	return result;
}

__attribute__((noinline)) static void doze(void)
{
	struct {
		int seconds, nanoseconds;
	} time = { 0, 5000000 };

	call(CALL_NANOSLEEP, (long)&time, 0, 0);
}

__attribute__((noinline)) static long spin(void)
{
	volatile long count = 0;

	for (int round = 0; round < 2000000; round++)
		count += round;
	return count;
}

__attribute__((noreturn)) void _start(void)
{
	static const char ready[] = "ready\n";

	call(CALL_ALARM, 60, 0, 0);
	call(CALL_WRITE, 1, (long)ready, sizeof(ready) - 1);
	for (;;) {
		spin();
		doze();
	}
}

#else

int main(void)
{
	return 0;
}

#endif
