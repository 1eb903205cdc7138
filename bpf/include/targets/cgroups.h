/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Selects threads by their cgroup of version 2, and by the filters that bcc's tools
 * offer. The filters are pinned maps, which other programs fill with the IDs of cgroups
 * or mount namespaces. A thread is measured from the time at which it joins a target
 * until it leaves.
 */
#ifndef SYSTEMSCOPE_CGROUPS_H
#define SYSTEMSCOPE_CGROUPS_H

#include "events.h"
#include "kernel_types.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/*
 * Levels that one call of climb_cgroups() climbs, and maximum number of its calls. A
 * cgroup with more ancestors counts in lost.deep_cgroups.
 */
#define CGROUP_LEVELS 64
#define CGROUP_CLIMBS 16

/* True if one of the filters below selects threads by membership. */
const volatile bool by_membership = false;
const volatile bool filter_cgroups = false;
const volatile bool filter_cgroupmap = false;
const volatile bool filter_mntnsmap = false;

/*
 * target_cgroups has the ID of each target. cgroup_membership caches, for each cgroup
 * that a program looked up, whether it is a target or below a target. A result stays
 * valid: the kernel neither reuses IDs nor moves a cgroup to another parent. If the
 * cache has no capacity for a result, programs compute it each time.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u8);
} target_cgroups SEC(".maps"), cgroup_membership SEC(".maps");

/* Placeholders, which user space replaces with the pinned maps. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u32);
} allowed_cgroups SEC(".maps"), allowed_mount_namespaces SEC(".maps");

static __always_inline struct cgroup *task_cgroup(struct task_struct *task)
{
	return BPF_CORE_READ(task, cgroups, dfl_cgrp);
}

static __always_inline u64 cgroup_id(struct cgroup *cgroup)
{
	return BPF_CORE_READ(cgroup, kn, id);
}

/* Results of climb_cgroups() at the end of the climb. */
enum climb_end {
	CLIMB_ROOT,
	CLIMB_TARGET,
};

/*
 * Searches the cgroup at @address and its ancestors for a target, at most CGROUP_LEVELS
 * in all. Returns an enum climb_end, or the address of the cgroup from which the caller
 * continues. The function is global, so the verifier checks it once.
 */
__noinline u64 climb_cgroups(u64 address)
{
	struct cgroup *cgroup = (void *)address;
	u64 id;

	for (u32 level = 0; level < CGROUP_LEVELS; level++) {
		id = cgroup_id(cgroup);
		if (bpf_map_lookup_elem(&target_cgroups, &id))
			return CLIMB_TARGET;
		cgroup = BPF_CORE_READ(cgroup, self.parent, cgroup);
		if (!cgroup)
			return CLIMB_ROOT;
	}
	return (u64)cgroup;
}

/*
 * Returns whether @task is in a target cgroup or below one. The function is out of line
 * so that its variables take no space on the stack of its callers.
 */
static __noinline bool is_in_target_cgroup(struct task_struct *task)
{
	u64 above = (u64)task_cgroup(task), id = cgroup_id((void *)above);
	u8 *known = bpf_map_lookup_elem(&cgroup_membership, &id);
	u8 is_member;

	if (known)
		return *known;
	for (u32 climb = 0; climb < CGROUP_CLIMBS; climb++) {
		above = climb_cgroups(above);
		if (above <= CLIMB_TARGET)
			break;
	}
	is_member = above == CLIMB_TARGET;
	if (!bpf_map_update_elem(&cgroup_membership, &id, &is_member,
				 BPF_NOEXIST) &&
	    above > CLIMB_TARGET)
		__sync_fetch_and_add(&lost.deep_cgroups, 1);
	return is_member;
}

/*
 * Returns whether every pinned map in use allows @task. The map of cgroups must have
 * the task's own cgroup, not only an ancestor.
 */
static __always_inline bool is_in_pinned_maps(struct task_struct *task)
{
	u64 id;

	if (filter_cgroupmap) {
		id = cgroup_id(task_cgroup(task));
		if (!bpf_map_lookup_elem(&allowed_cgroups, &id))
			return false;
	}
	if (!filter_mntnsmap)
		return true;
	id = BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum);
	return bpf_map_lookup_elem(&allowed_mount_namespaces, &id);
}

#endif
