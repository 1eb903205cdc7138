// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Names a kernel address. The kernel takes about 40 ms to write all its symbols to a
 * reader of /proc/kallsyms, and a microsecond to name one address.
 */
#include "kernel_types.h"

#include <bpf/bpf_helpers.h>

/* Larger than KSYM_SYMBOL_LEN of include/linux/kallsyms.h. */
#define KERNEL_NAME_LENGTH 1024

struct kernel_name {
	char text[KERNEL_NAME_LENGTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct kernel_name);
} kernel_name SEC(".maps");

/* name+offset/size [module]: symbol_string() of lib/vsprintf.c. */
static const char format[] = "%pS";

/*
 * Writes the name of an address, the first argument, to the map. User space runs this.
 * If bpf_snprintf() fails, the text is empty. Kernels have this helper since 5.13.
 */
SEC("raw_tp")
int name_address(u64 *arguments)
{
	u32 zero = 0;
	u64 address = arguments[0];
	struct kernel_name *name = bpf_map_lookup_elem(&kernel_name, &zero);

	if (!name)
		return 0;
	name->text[0] = 0;
	bpf_snprintf(name->text, sizeof(name->text), format, &address,
		     sizeof(address));
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
