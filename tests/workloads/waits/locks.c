// SPDX-License-Identifier: MIT
/*
 * Four locks. A thread holds each lock for a time of its own in a function of its own, and
 * another thread wants the lock all the time. One lock belongs to no library, like InnoDB's
 * locks.
 *
 * usage: locks
 */
#include "workload.h"

#define BREAK_NS (200 * NS_PER_US)

static pthread_mutex_t ledger_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t index_lock = PTHREAD_RWLOCK_INITIALIZER;

/*
 * Number of threads that have the lock or want it, and a bit that is set while a thread has
 * it.
 */
static _Atomic uint32_t own_lock;
#define IS_HELD 0x80000000u

static NOINLINE void lock_own(void)
{
	uint32_t word = atomic_fetch_add(&own_lock, 1) + 1;

	for (;;) {
		if (!(word & IS_HELD)) {
			if (atomic_compare_exchange_weak(&own_lock, &word,
							 word | IS_HELD))
				return;
		} else {
			futex_wait(&own_lock, word);
			word = atomic_load(&own_lock);
		}
	}
}

static NOINLINE void unlock_own(void)
{
	if (atomic_fetch_sub(&own_lock, IS_HELD + 1) != IS_HELD + 1)
		futex_wake(&own_lock, 1);
}

static NOINLINE void settle_ledger(void)
{
	pthread_mutex_lock(&ledger_lock);
	sleep_ns(5 * NS_PER_MS);
	pthread_mutex_unlock(&ledger_lock);
	sleep_ns(BREAK_NS);
}

static NOINLINE void flush_journal(void)
{
	pthread_mutex_lock(&journal_lock);
	sleep_ns(10 * NS_PER_MS);
	pthread_mutex_unlock(&journal_lock);
	sleep_ns(BREAK_NS);
}

static NOINLINE void rebuild_index(void)
{
	pthread_rwlock_wrlock(&index_lock);
	sleep_ns(20 * NS_PER_MS);
	pthread_rwlock_unlock(&index_lock);
	sleep_ns(BREAK_NS);
}

static NOINLINE void write_own(void)
{
	lock_own();
	sleep_ns(2500 * NS_PER_US);
	unlock_own();
	sleep_ns(BREAK_NS);
}

static NOINLINE void read_own(void)
{
	lock_own();
	unlock_own();
}

static NOINLINE void read_ledger(void)
{
	pthread_mutex_lock(&ledger_lock);
	pthread_mutex_unlock(&ledger_lock);
}

static NOINLINE void read_journal(void)
{
	pthread_mutex_lock(&journal_lock);
	pthread_mutex_unlock(&journal_lock);
}

static NOINLINE void read_index(void)
{
	pthread_rwlock_rdlock(&index_lock);
	pthread_rwlock_unlock(&index_lock);
}

static const struct part {
	const char *name;
	void (*once)(void);
} parts[] = {
	{ "l_settle", settle_ledger },	{ "l_ledger", read_ledger },
	{ "l_flush", flush_journal },	{ "l_journal", read_journal },
	{ "l_rebuild", rebuild_index }, { "l_index", read_index },
	{ "l_write", write_own },	{ "l_own", read_own },
};

static void *play(void *argument)
{
	const struct part *part = argument;

	name_thread(part->name);
	for (;;)
		part->once();
	return NULL;
}

int main(void)
{
	for (unsigned long at = 0; at < sizeof(parts) / sizeof(parts[0]); at++)
		start_thread_of(play, (void *)&parts[at]);
	tell("ready");
	return leave_with_test(NULL) != NULL;
}
