/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What is new: a program, or code that has no tables yet. User space looks often for a
 * while then, and seldom else, as each look costs a CPU that was idle more than what is
 * there to be taken.
 */
#ifndef SYSTEMSCOPE_NEWS_H
#define SYSTEMSCOPE_NEWS_H

#include "events.h"

/*
 * When there was news last of which user space was told, CLOCK_MONOTONIC. It looks
 * often for twice as long as it is not told of more.
 */
volatile u64 news_ns = 0;

#define NEWS_TOLD_NS (250 * 1000 * 1000ULL)

/* Whether user space is to be woken for what is new now. */
static __always_inline bool is_news(void)
{
	u64 now = bpf_ktime_get_ns();

	if (now - news_ns < NEWS_TOLD_NS)
		return false;
	news_ns = now;
	return true;
}

#endif
