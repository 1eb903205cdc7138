/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Describes files and resources that are files: sockets, pipes, epoll instances. */
#ifndef SYSTEMSCOPE_FILES_H
#define SYSTEMSCOPE_FILES_H

#include "waits/sockets.h"

/* include/uapi/linux/magic.h */
#define ANON_INODE_FS_MAGIC 0x09041934
/* fs/pidfs.c since 6.9. Before that pidfds are anonymous files. */
#define PID_FS_MAGIC 0x50494446

/* include/uapi/linux/stat.h */
#define S_IFMT 0170000
#define S_IFIFO 0010000
#define S_IFSOCK 0140000

/* Returns the file that @fd of @task refers to now; NULL if there is none. */
static __always_inline struct file *file_of(struct task_struct *task, u32 fd)
{
	struct file **files = BPF_CORE_READ(task, files, fdt, fd), *file = NULL;

	if (fd >= BPF_CORE_READ(task, files, fdt, max_fds))
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), &files[fd]);
	return file;
}

/*
 * Returns the first ready file of an epoll instance, and sets @fd to the descriptor
 * with which the file was added. A ready file stays in the list until the woken thread
 * takes it.
 */
static __always_inline struct file *ready_file(struct file *epoll, u32 *fd)
{
	struct eventpoll *instance = BPF_CORE_READ(epoll, private_data);
	struct list_head *head =
		(void *)instance +
		bpf_core_field_offset(struct eventpoll, rdllist);
	struct list_head *first = BPF_CORE_READ(head, next);
	struct epitem *item;

	if (!first || first == head)
		return NULL;
	item = (void *)first - bpf_core_field_offset(struct epitem, rdllink);
	*fd = BPF_CORE_READ(item, ffd.fd);
	return BPF_CORE_READ(item, ffd.file);
}

/* Reads the last component of a file's path, in case user space cannot read the path. */
static __always_inline void read_name(struct object_event *event,
				      struct dentry *dentry)
{
	const unsigned char *name = BPF_CORE_READ(dentry, d_name.name);
	long length;

	length = bpf_probe_read_kernel_str(event->name, sizeof(event->name),
					   name);
	event->name_length = length > 0 ? length - 1 : 0;
}

/* Returns one of the names of @inode. */
static __always_inline struct dentry *first_alias(struct inode *inode)
{
	struct hlist_node *alias = BPF_CORE_READ(inode, i_dentry.first);
	struct dentry___of_alias *named = NULL;

	if (!alias)
		return NULL;
	if (bpf_core_field_exists(named->d_alias))
		return (void *)alias -
		       bpf_core_field_offset(struct dentry___of_alias, d_alias);
	return (void *)alias - bpf_core_field_offset(struct dentry, d_u);
}

static __always_inline void describe_inode(struct object_event *event,
					   struct inode *inode)
{
	event->object = OBJECT_FILE;
	event->mode = BPF_CORE_READ(inode, i_mode);
	event->device = BPF_CORE_READ(inode, i_sb, s_dev);
	event->inode = BPF_CORE_READ(inode, i_ino);
	event->generation = BPF_CORE_READ(inode, i_generation);
}

/* Returns the struct pid of a pidfd; NULL if @file is no pidfd. */
static __always_inline struct pid *pid_of_file(struct file *file)
{
	/* The seven bytes of [pidfd] and the NUL. */
	const u64 PIDFD_NAME = 0x005d64666469705bULL;
	u64 magic = BPF_CORE_READ(file, f_inode, i_sb, s_magic), name = 0;
	const unsigned char *text;

	if (magic == PID_FS_MAGIC)
		return BPF_CORE_READ(file, f_inode, i_private);
	if (magic != ANON_INODE_FS_MAGIC)
		return NULL;
	text = BPF_CORE_READ(file, f_path.dentry, d_name.name);
	bpf_probe_read_kernel(&name, sizeof(name), text);
	return name == PIDFD_NAME ? BPF_CORE_READ(file, private_data) : NULL;
}

/* Returns the task of @pid; NULL once its parent has reaped it. */
static __always_inline struct task_struct *task_of_pid(struct pid *pid)
{
	struct pid___of_tasks *with_tasks = (void *)pid;
	struct hlist_node *link = BPF_CORE_READ(with_tasks, tasks[0].first);

	if (!link)
		return NULL;
	return (void *)link -
	       bpf_core_field_offset(struct task_struct, pid_links);
}

static __always_inline void read_comm(struct object_event *event,
				      struct task_struct *task)
{
	event->name_length = COMM_LENGTH;
	bpf_core_read_str(event->name, COMM_LENGTH, &task->comm);
}

static __always_inline void describe_pidfd(struct object_event *event,
					   struct pid *pid)
{
	struct task_struct *task = task_of_pid(pid);

	event->object = OBJECT_PIDFD;
	event->tid = pid_number(pid);
	if (task)
		read_comm(event, task);
}

static __always_inline void describe_file(struct object_event *event,
					  struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct socket *socket;
	struct pid *pid;

	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFSOCK) {
		socket = BPF_CORE_READ(file, private_data);
		describe_socket(event, BPF_CORE_READ(socket, sk));
		return;
	}
	pid = pid_of_file(file);
	if (pid) {
		describe_pidfd(event, pid);
		return;
	}
	if (BPF_CORE_READ(inode, i_sb, s_magic) == ANON_INODE_FS_MAGIC) {
		event->object = OBJECT_ANONYMOUS;
		read_name(event, BPF_CORE_READ(file, f_path.dentry));
		return;
	}
	describe_inode(event, inode);
}

#endif
