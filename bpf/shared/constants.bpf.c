// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Constants of headers that user space needs and that no type in BTF has.
 * bpf/constants.rs generates Rust constants from these values, so that each value is
 * stated once. User space never loads this object.
 */
#include "../src/offwaketime.bpf.c"

/*
 * Low and high half of a value. Compilers before clang 15 describe only enums of at
 * most 32 bits.
 */
#define SHARE(name)                                                            \
	SHARED_LOW_##name = (u32)(name), SHARED_HIGH_##name = (u64)(name) >> 32

enum shared_constant {
	SHARE(STACK_OF_PREEXISTING),
	SHARE(NO_OBJECT),
	SHARE(CHAIN_ANCHOR),
	SHARE(LOCK_LANGUAGE_SHIFT),
	SHARE(CHAIN_SPAN),
	SHARE(CHAIN_COMPILED),
	SHARE(CHAIN_INTERRUPTED),
	SHARE(CHAIN_BEGINS),
	SHARE(CGROUP_LEVELS),
	SHARE(CGROUP_CLIMBS),
	SHARE(CLOCK_STATE_BITS),
	SHARE(SQUARE_SHIFT),
	SHARE(LONGEST_SQUARED),
};

enum shared_constant shared_constant;
