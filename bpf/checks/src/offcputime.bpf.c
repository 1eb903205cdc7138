// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Parts of offcputime, to be run one by one on what a test makes up. */
#include "../../src/offcputime.bpf.c"

#include "end_wait.h"
