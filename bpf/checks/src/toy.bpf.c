// SPDX-License-Identifier: GPL-2.0 OR MIT
/* offcputime with an additional language, to test the addition of a language. */
#include "toy.h"

#define MORE_LANGUAGES(ONE) ONE(TOY, toy)

#include "../../src/offcputime.bpf.c"
