/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Awaited cgroups, which do not exist yet. An awaited cgroup becomes a target when it
 * is made, before any process can be in it. Programs note the time at which the first
 * process is in any target. Names of units and containers count only in places in which
 * root alone can make cgroups.
 */
#ifndef SYSTEMSCOPE_AWAITED_CGROUPS_H
#define SYSTEMSCOPE_AWAITED_CGROUPS_H

#include "events.h"
#include "targets/filter.h"

/* Maximum length of an awaited cgroup's name, with a NUL. */
#define CGROUP_NAME_LENGTH 128

/* Level at which the name of a cgroup counts; user space numbers the levels of paths. */
enum awaited_level {
	LEVEL_ANYWHERE,
	LEVEL_AMONG_UNITS,
	LEVEL_FIRST_OF_PATHS,
};

USER_SPACE_KNOWS(enum, awaited_level);

struct cgroup_place {
	u64 level;
	char name[CGROUP_NAME_LENGTH];
};

/*
 * Awaited cgroups. The value is the level of a cgroup's children, or 0 if the cgroup
 * itself is a target.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct cgroup_place);
	__type(value, u64);
} awaited_cgroups SEC(".maps");

/*
 * Levels of a cgroup's children, by the cgroup's ID. The children of a cgroup in
 * holding_units may be units.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u64);
} awaited_below SEC(".maps"), holding_units SEC(".maps");

/* include/uapi/linux/stat.h */
#define S_IWGRP 00020
#define S_IWOTH 00002

/* Stores a new cgroup, below which awaited cgroups may appear. */
static __always_inline void note_cgroup(void *map, u64 id, u64 value)
{
	if (bpf_map_update_elem(map, &id, &value, BPF_ANY))
		__sync_fetch_and_add(&lost.children, 1);
}

/* Returns whether the kernel's memory at @text has the same @length bytes as @wanted. */
static __always_inline bool is_equal(const char *text, const char *wanted,
				     u32 length)
{
	char read[8] = {};

	bpf_probe_read_kernel(read, length, text);
	for (u32 i = 0; i < length; i++) {
		if (read[i] != wanted[i])
			return false;
	}
	return true;
}

/* Returns whether @name, which is @length bytes long, names a slice of systemd. */
static __always_inline bool is_slice(const char *name, u32 length)
{
	const char slice[] = { '.', 's', 'l', 'i', 'c', 'e' };

	return length >= sizeof(slice) &&
	       is_equal(name + length - sizeof(slice), slice, sizeof(slice));
}

/*
 * Returns whether users other than root can make cgroups in @cgroup. Missing attributes
 * read as 0, which is root.
 */
static __always_inline bool is_delegated(struct cgroup *cgroup)
{
	struct kernfs_node *node = BPF_CORE_READ(cgroup, kn);
	u32 user = BPF_CORE_READ(node, iattr, ia_uid.val);
	u32 group = BPF_CORE_READ(node, iattr, ia_gid.val);
	u32 writers = S_IWOTH | (group ? S_IWGRP : 0);

	return user || BPF_CORE_READ(node, mode) & writers;
}

/*
 * Returns whether a cgroup above @cgroup is delegated, so that users other than root
 * can choose the name of @cgroup.
 */
static __noinline bool is_below_delegated(struct cgroup *cgroup)
{
	for (u32 level = 0; level < CGROUP_LEVELS; level++) {
		cgroup = BPF_CORE_READ(cgroup, self.parent, cgroup);
		if (!cgroup)
			return false;
		if (is_delegated(cgroup))
			return true;
	}
	return true;
}

/* Handles cgroup_mkdir, which comes before the cgroup appears in the file system. */
static __always_inline int add_awaited_cgroup(u64 *ctx)
{
	struct cgroup *cgroup = (void *)ctx[0];
	struct cgroup_place wanted = { .level = LEVEL_ANYWHERE };
	u64 id = cgroup_id(cgroup), above, *level, *below = NULL;
	const char *name = BPF_CORE_READ(cgroup, kn, name);
	u8 is_target = 1;
	long size;

	/* Hierarchies of version 1 have other IDs. */
	if (BPF_CORE_READ(cgroup, root, hierarchy_id))
		return 0;
	/*
	 * Awaited names are shorter than the buffer, so a name that is cut off never
	 * matches.
	 */
	size = bpf_probe_read_kernel_str(wanted.name, sizeof(wanted.name),
					 name);
	if (size <= 0)
		return 0;
	above = cgroup_id(BPF_CORE_READ(cgroup, self.parent, cgroup));

	if (!is_below_delegated(cgroup)) {
		below = bpf_map_lookup_elem(&awaited_cgroups, &wanted);
		if (bpf_map_lookup_elem(&holding_units, &above)) {
			if (is_slice(name, size - 1))
				note_cgroup(&holding_units, id, 1);
			wanted.level = LEVEL_AMONG_UNITS;
			if (!below)
				below = bpf_map_lookup_elem(&awaited_cgroups,
							    &wanted);
		}
	}
	level = bpf_map_lookup_elem(&awaited_below, &above);
	if (level && !below) {
		wanted.level = *level;
		below = bpf_map_lookup_elem(&awaited_cgroups, &wanted);
	}
	if (!below)
		return 0;
	if (*below)
		note_cgroup(&awaited_below, id, *below);
	else if (bpf_map_update_elem(&target_cgroups, &id, &is_target, BPF_ANY))
		__sync_fetch_and_add(&lost.children, 1);
	return 0;
}

/*
 * Notes the time at which the first task is in a target. Programs call it at
 * cgroup_attach_task, and at sched_wakeup_new because clone3() can make a process in
 * another cgroup than its caller's.
 */
static __always_inline int note_first_member(struct task_struct *task)
{
	if (!first_awaited_ns && is_target(task, task->tgid, task->pid))
		first_awaited_ns = bpf_ktime_get_ns();
	return 0;
}

#endif
