// SPDX-License-Identifier: GPL-2.0 OR MIT
/* offcputime with one language more, to test what a language adds. */
#include "toy.h"

#define MORE_LANGUAGES(ONE) ONE(TOY, toy)

#include "../../src/offcputime.bpf.c"
