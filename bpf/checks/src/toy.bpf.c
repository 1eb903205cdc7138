// SPDX-License-Identifier: GPL-2.0 OR MIT
/* offcputime with an additional language, for a test of how a language is added. */
#include "toy.h"

#define MORE_LANGUAGES(ONE) ONE(TOY, toy)

#include "../../src/offcputime.bpf.c"
