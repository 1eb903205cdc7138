/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * News for user space: a new program, or code without unwind tables. User space polls
 * often for a while after news. At other times it polls rarely, because a poll on an
 * idle CPU costs more than the data that it takes.
 */
#ifndef SYSTEMSCOPE_NEWS_H
#define SYSTEMSCOPE_NEWS_H

#include "events.h"

/*
 * Time at which a program last woke user space for news, in ns of CLOCK_MONOTONIC. User
 * space polls often for 2 * NEWS_TOLD_NS after it.
 */
volatile u64 news_ns = 0;

#define NEWS_TOLD_NS (250 * 1000 * 1000ULL)

/* Returns whether to wake user space for news, and notes the time if so. */
static __always_inline bool note_news(void)
{
	u64 now = bpf_ktime_get_ns();

	if (now - news_ns < NEWS_TOLD_NS)
		return false;
	news_ns = now;
	return true;
}

#endif
