// SPDX-License-Identifier: MIT
/*
 * Program whose functions take known shares of its time. The arguments make some functions
 * longer.
 *
 * usage: shifts [BURN_PERCENT [HOLD_PERCENT]] (by how much each is longer, default 0)
 * main computes in first_part for 30 % of its time, in second_part for 50 %, and in third_part
 * for the rest. The holder takes a lock for 500 us at a time, and rests for as long. The
 * waiter waits for the lock, and rests for 1 ms. All times except the lock's vary at random by
 * up to a half. Without this, work in step with a timer or with other work would differ
 * between runs by more than chance.
 */
#include "workload.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t hold_ns;

/*
 * Returns a random time from half of @mean to one and a half of it; xorshift64 (Marsaglia,
 * 2003).
 */
static uint64_t about(uint64_t *seed, uint64_t mean)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return mean / 2 + mean * (*seed >> 32) / UINT32_MAX;
}

ALWAYS_INLINE void burn(uint64_t turns)
{
	for (volatile uint64_t turn = 0; turn < turns; turn++)
		;
}

NOINLINE void first_part(uint64_t turns)
{
	burn(turns);
}

NOINLINE void second_part(uint64_t turns)
{
	burn(turns);
}

NOINLINE void third_part(uint64_t turns)
{
	burn(turns);
}

NOINLINE void *holder(void *unused)
{
	uint64_t seed = now_ns();

	(void)unused;
	name_thread("holder");
	for (;;) {
		pthread_mutex_lock(&lock);
		sleep_ns(hold_ns);
		pthread_mutex_unlock(&lock);
		sleep_ns(about(&seed, 500 * NS_PER_US));
	}
	return NULL;
}

NOINLINE void wait_for_lock(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

NOINLINE void *waiter(void *unused)
{
	uint64_t seed = now_ns();

	(void)unused;
	name_thread("waiter");
	for (;;) {
		wait_for_lock();
		sleep_ns(about(&seed, NS_PER_MS));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t burn_percent = 100 + argument_or(argc, argv, 1, 0);
	uint64_t hold_percent = 100 + argument_or(argc, argv, 2, 0);
	const uint64_t turns = 10 * 1000;
	uint64_t seed = now_ns();

	hold_ns = 500 * NS_PER_US * hold_percent / 100;
	start_thread_of(holder, NULL);
	start_thread_of(waiter, NULL);
	tell("ready");
	for (;;) {
		first_part(about(&seed, 30 * turns) * burn_percent / 100);
		second_part(about(&seed, 50 * turns));
		third_part(about(&seed, 20 * turns));
	}
}
