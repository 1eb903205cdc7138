/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The few kernel types that the programs read, relocated by CO-RE when they
 * are loaded: only names and nesting matter here, never offsets.
 */
#ifndef SYSTEMSCOPE_KERNEL_TYPES_H
#define SYSTEMSCOPE_KERNEL_TYPES_H

#include <stdbool.h>

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u64 u64;
typedef __s64 s64;
typedef __u32 u32;
typedef __u16 u16;
typedef __u8 u8;
typedef __s16 s16;
typedef __s32 s32;

/* include/uapi/linux/bpf.h: the values used here, fixed as kernel ABI. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
};

enum {
	BPF_F_USER_STACK = 1 << 8,
};

enum {
	BPF_F_MMAPABLE = 1 << 10,
};

enum {
	BPF_RB_NO_WAKEUP = 1 << 0,
	BPF_RB_FORCE_WAKEUP = 1 << 1,
};

enum {
	BPF_RB_AVAIL_DATA = 0,
};

/*
 * Its values differ between kernels only by what is appended; declared so
 * that the presence of a helper can be asked of the running kernel's BTF.
 */
enum bpf_func_id {
	BPF_FUNC_task_pt_regs = 175,
};

#pragma clang attribute push(__attribute__((preserve_access_index)),           \
			     apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct path f_path;
};

struct mm_struct {
	struct file *exe_file;
	unsigned long exec_vm;
	unsigned long start_stack;
	unsigned long arg_start;
	unsigned long arg_end;
};

/* Its ID is its own for as long as the machine runs. */
struct kernfs_node {
	u64 id;
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct mnt_namespace {
	struct ns_common ns;
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
};

struct signal_struct {
	int nr_threads;
};

struct rq;

struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
	u64 sum_exec_runtime;
	u64 prev_sum_exec_runtime;
};

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	void *stack;
	/* An int, then a byte: of an unsigned field the size is relocated, too. */
	unsigned int on_cpu;
	int exit_state;
	int pid;
	int tgid;
	struct sched_entity se;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	struct pid *thread_pid;
	struct css_set *cgroups;
	struct nsproxy *nsproxy;
	struct signal_struct *signal;
	u64 start_time;
	u64 start_boottime;
	unsigned long nvcsw;
	unsigned long nivcsw;
	u64 self_exec_id;
	char comm[16];
};

/* Before 5.14 the state was a long under another name. */
struct task_struct___before_5_14 {
	long state;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

/* What 6.2 to 6.14 keep together for each CPU. */
struct pcpu_hot {
	int preempt_count;
};

struct linux_binprm;
struct bpf_perf_event_data;

#pragma clang attribute pop

/* include/linux/sched.h */
#define TASK_DEAD 0x80
#define TASK_WAKING 0x200
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000

/*
 * Rust has its types from BTF, which describes what a map, a variable or a
 * constant is of. This makes it describe a struct or an enum that none is of.
 */
#define USER_SPACE_KNOWS(kind, name)                                           \
	const volatile kind name *const volatile known_##name = 0

#endif
