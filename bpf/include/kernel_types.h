/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Kernel types that the programs read. CO-RE relocates their fields at load time, so
 * only names and nesting matter here, and offsets do not.
 */
#ifndef SYSTEMSCOPE_KERNEL_TYPES_H
#define SYSTEMSCOPE_KERNEL_TYPES_H

#include <stdbool.h>

#include "thread_struct.h"

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

/* Values of include/uapi/linux/bpf.h, fixed as kernel ABI. */
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
 * Kernels only append to this enum. A program looks a helper up in the running kernel's
 * BTF by these names.
 */
enum bpf_func_id {
	BPF_FUNC_get_current_task_btf = 158,
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

struct list_head {
	struct list_head *next;
	struct list_head *prev;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

/*
 * Tasks that use the pid, by PIDTYPE of include/linux/pid_types.h. PIDTYPE_PID is the
 * first.
 */
struct pid___of_tasks {
	struct hlist_head tasks[1];
};

/* d_u is a union with the member d_alias. */
struct dentry {
	struct qstr d_name;
	struct hlist_node d_u;
};

/* Directory entry of kernels such as 7.2, where the union has no name. */
struct dentry___of_alias {
	struct hlist_node d_alias;
};

struct path {
	struct dentry *dentry;
};

struct super_block {
	unsigned int s_dev;
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	struct hlist_head i_dentry;
	u32 i_generation;
	void *i_private;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct address_space {
	struct inode *host;
};

struct page {
	struct address_space *mapping;
};

struct folio {
	struct address_space *mapping;
};

struct wait_queue_entry {
	void *private;
	struct list_head entry;
};

struct wait_page_queue {
	struct folio *folio;
	struct wait_queue_entry wait;
};

/* Layout before Linux 5.16. */
struct wait_page_queue___of_pages {
	struct page *page;
};

struct poll_table_entry {
	struct file *filp;
	struct wait_queue_entry wait;
};

struct poll_wqueues {
	struct task_struct *polling_task;
	int inline_index;
	struct poll_table_entry inline_entries[2];
};

struct epoll_filefd {
	struct file *file;
	int fd;
};

struct epitem {
	struct list_head rdllink;
	struct epoll_filefd ffd;
};

struct eventpoll {
	struct list_head rdllist;
};

struct in6_addr {
	u8 bytes[16];
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	u16 sk_type;
	u16 sk_protocol;
	struct pid *sk_peer_pid;
};

struct socket {
	struct sock *sk;
};

struct sockaddr_un {
	unsigned short sun_family;
};

/* @len is the length of the whole name, sun_family included. */
struct unix_address {
	int len;
	struct sockaddr_un name[1];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

/* kernel/events/uprobes.c and include/linux/uprobes.h */
struct return_instance {
	unsigned long stack;
	unsigned long orig_ret_vaddr;
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances;
};

struct xol_area {
	unsigned long vaddr;
};

struct uprobes_state {
	struct xol_area *xol_area;
};

struct mm_struct {
	struct uprobes_state uprobes_state;
	struct file *exe_file;
	unsigned long exec_vm;
	unsigned long start_stack;
	unsigned long arg_start;
	unsigned long arg_end;
};

typedef struct {
	u32 val;
} kuid_t;

typedef struct {
	u32 val;
} kgid_t;

struct kernfs_iattrs {
	kuid_t ia_uid;
	kgid_t ia_gid;
};

/* @id is unique until the next boot. A node without attributes belongs to root. */
struct kernfs_node {
	u64 id;
	const char *name;
	unsigned short mode;
	struct kernfs_iattrs *iattr;
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

/* The hierarchy of version 2 has the number 0. */
struct cgroup_root {
	int hierarchy_id;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
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

/* Since 6.12 rt_throttled exists only with group scheduling of real-time threads. */
struct rt_rq {
	int rt_throttled;
};

struct rq {
	struct rt_rq rt;
};

struct cfs_rq {
	struct rq *rq;
	int throttle_count;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
	u64 sum_exec_runtime;
	u64 prev_sum_exec_runtime;
};

/* rt_rq exists only with group scheduling of real-time threads. */
struct sched_rt_entity {
	struct rt_rq *rt_rq;
};

struct sched_dl_entity {
	unsigned int dl_throttled : 1;
	unsigned int dl_yielded : 1;
};

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	void *stack;
	/*
	 * An int in some kernels, a byte in others. CO-RE relocates the size of an
	 * unsigned field, too.
	 */
	unsigned int on_cpu;
	int prio;
	bool throttled;
	int exit_state;
	int pid;
	int tgid;
	struct sched_entity se;
	struct sched_rt_entity rt;
	struct sched_dl_entity dl;
	struct mm_struct *mm;
	struct files_struct *files;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	struct list_head children;
	struct list_head sibling;
	struct pid *thread_pid;
	struct hlist_node pid_links[1];
	struct css_set *cgroups;
	struct nsproxy *nsproxy;
	struct signal_struct *signal;
	u64 start_time;
	u64 start_boottime;
	unsigned long nvcsw;
	unsigned long nivcsw;
	u64 self_exec_id;
	char comm[16];
	struct uprobe_task *utask;
	struct thread_struct thread;
};

/* Before 5.14 the state was a long with another name. */
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

/* Per-CPU data of Linux 6.2 to 6.14. */
struct pcpu_hot {
	int preempt_count;
};

struct linux_binprm;
struct bpf_perf_event_data;

#pragma clang attribute pop

/* include/linux/sched.h */
#define TASK_STOPPED 0x4
#define TASK_DEAD 0x80
#define TASK_WAKING 0x200
/* Since 6.1; earlier kernels have no such bit. */
#define TASK_FROZEN 0x8000
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000

/*
 * Makes BTF describe a struct or an enum that is the type of no map, variable or
 * constant. The build generates the Rust types from BTF.
 */
#define USER_SPACE_KNOWS(kind, name)                                           \
	const volatile kind name *const volatile known_##name = 0

#endif
