/*
 * C program with a Python interpreter. Three threads run Python: its first thread, a thread
 * that the program starts itself, and a thread with an interpreter of its own. All of them
 * block.
 *
 * usage: embedding LIBPYTHON
 */
#include "workload.h"

#include <dlfcn.h>

static const char script[] = "import time\n"
			     "def outer():\n"
			     "    inner()\n"
			     "def inner():\n"
			     "    time.sleep(1000)\n"
			     "outer()\n";

static void *library;

static void *find(const char *name)
{
	void *found = dlsym(library, name);

	if (!found) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return found;
}

/* Python.h belongs to one version, so the program finds the functions by their names. */
#define CALL(type, name, ...) (((type(*)())find(name))(__VA_ARGS__))

static NOINLINE int run_script(void)
{
	int failed = CALL(int, "PyRun_SimpleString", script);

	/*
	 * Without this code the call would be a tail call, and this function would have no
	 * frame.
	 */
	return failed ? 1 : 0;
}

static void *in_its_own_thread(void *unused)
{
	name_thread("e_thread");
	CALL(int, "PyGILState_Ensure");
	run_script();
	return unused;
}

static void *in_its_own_interpreter(void *interpreter)
{
	void *thread = CALL(void *, "PyThreadState_New", interpreter);

	name_thread("e_interpreter");
	CALL(void, "PyEval_AcquireThread", thread);
	run_script();
	return interpreter;
}

int main(int argc, char **argv)
{
	pthread_t thread, other;
	void *first, *interpreter;

	library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	if (!library) {
		fprintf(stderr, "usage: embedding LIBPYTHON\n");
		return 2;
	}
	CALL(void, "Py_InitializeEx", 0);
	first = CALL(void *, "PyThreadState_Get");
	CALL(void *, "Py_NewInterpreter");
	interpreter = CALL(void *, "PyInterpreterState_Head");
	CALL(void *, "PyThreadState_Swap", first);

	pthread_create(&thread, NULL, in_its_own_thread, NULL);
	pthread_create(&other, NULL, in_its_own_interpreter, interpreter);
	puts("ready");
	fflush(stdout);
	return run_script();
}
