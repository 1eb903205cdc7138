// SPDX-License-Identifier: MIT
/*
 * Code that no file contains: a loop that the program writes into memory at run time. The
 * program names it in /tmp/perf-PID.map, as JIT compilers do.
 *
 * usage: jit [SECONDS]
 * The program removes the map after the test's last line.
 */
#include "workload.h"

/*
 * Code that calls its argument, a function pointer, until the function returns a non-zero
 * value.
 */
#if defined(__x86_64__)
static const unsigned char code[] = {
	0x55,		  /* push %rbp */
	0x48, 0x89, 0xe5, /* mov %rsp,%rbp */
	0x53,		  /* push %rbx */
	0x50,		  /* push %rax, to keep the stack aligned */
	0x48, 0x89, 0xfb, /* mov %rdi,%rbx */
	0xff, 0xd3,	  /* again: call *%rbx */
	0x85, 0xc0,	  /* test %eax,%eax */
	0x74, 0xfa,	  /* je again */
	0x58,		  /* pop %rax */
	0x5b,		  /* pop %rbx */
	0x5d,		  /* pop %rbp */
	0xc3,		  /* ret */
};
#else
#error "write the spin loop for this architecture"
#endif

static uint64_t end;

NOINLINE int burn_and_sleep(void)
{
	for (volatile unsigned int turn = 0; turn < 3 * 1000 * 1000; turn++)
		;
	sleep_ns(3 * NS_PER_MS);
	return now_ns() >= end;
}

int main(int argc, char **argv)
{
	uint64_t seconds = argument_or(argc, argv, 1, 2);
	void (*spin)(int (*)(void));
	char path[64];
	void *page;
	FILE *map;

	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(page == MAP_FAILED, "mmap");
	memcpy(page, code, sizeof(code));
	check(mprotect(page, 4096, PROT_READ | PROT_EXEC), "mprotect");
	spin = (void (*)(int (*)(void)))page;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	check(!map, path);
	fprintf(map, "%lx %lx LazyCompile:*spin script.js:7\n",
		(unsigned long)page, sizeof(code));
	fclose(map);
	tell("ready");

	await_test();
	end = now_ns() + seconds * NS_PER_S;
	spin(burn_and_sleep);
	tell("done");

	await_test();
	unlink(path);
	return 0;
}
