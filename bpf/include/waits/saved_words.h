/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Finds words that a thread off the CPU has saved on its kernel stack. */
#ifndef SYSTEMSCOPE_SAVED_WORDS_H
#define SYSTEMSCOPE_SAVED_WORDS_H

#include "task.h"
#include "waits/files.h"

/* Returns a pointer as a number, because global functions take no pointers here. */
static __always_inline u64 as_number(const void *pointer)
{
	u64 number = 0;

	bpf_probe_read_kernel(&number, sizeof(number), &pointer);
	return number;
}

/* Words that one read gets from a stack, and maximum reads. */
#define STACK_CHUNK 6
#define STACK_CHUNKS 86
/* Maximum candidates that a search examines. */
#define MAX_FOUND 32

/*
 * Searches the kernel stack of a task off the CPU from @at to @end for @value or
 * @other. Returns the address of the first such word; 0 if there is none. The search
 * ignores the two lowest bits of a saved value, which may be flags, as in struct fd.
 * The function is global to save the verifier work: see publish_stack().
 */
__noinline u64 find_on_stack(u64 value, u64 other, u64 at, u64 end)
{
	u64 words[STACK_CHUNK];

	for (u32 i = 0; i < STACK_CHUNKS; i++, at += sizeof(words)) {
		if (at + sizeof(words) > end ||
		    bpf_probe_read_kernel(words, sizeof(words), (void *)at))
			break;
		for (u32 word = 0; word < STACK_CHUNK; word++) {
			u64 saved = words[word] & ~3ULL;

			if (saved == value || saved == other)
				return at + word * sizeof(u64);
		}
	}
	return 0;
}

/*
 * Returns the address at which searches of @task's kernel stack end. The verifier does
 * not know the type of @task here.
 */
static __always_inline u64 end_of_stack(struct task_struct *task)
{
	return as_number(regs_at_stack_top(BPF_CORE_READ(task, stack)));
}

/* Returns whether the kernel stack of @task, which is off the CPU, has @one or @other. */
static __always_inline bool has_on_stack(struct task_struct *task,
					 const void *one, const void *other)
{
	return find_on_stack(as_number(one), as_number(other),
			     BPF_CORE_READ(task, SAVED_STACK_POINTER),
			     end_of_stack(task));
}

/*
 * Returns the pipe or socket behind @file, which every call that waits in @file uses;
 * NULL for other files.
 */
static __always_inline void *used_object(struct file *file)
{
	void *behind = BPF_CORE_READ(file, private_data);

	switch (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) {
	case S_IFIFO:
		return behind;
	case S_IFSOCK:
		return BPF_CORE_READ((struct socket *)behind, sk);
	default:
		return NULL;
	}
}

/*
 * Returns the file that @task, which is off the CPU, uses as @fd in its system call;
 * NULL if unknown. The call holds its file to the end, while another thread may close
 * the descriptor and open another file there. The file is therefore right only if the
 * stack has it or the object behind it. Earlier calls leave words on the stack as well,
 * so both words must match if the waiting code has both.
 */
static __always_inline struct file *held_file(struct task_struct *task, u32 fd)
{
	struct file *file = file_of(task, fd);
	void *behind = BPF_CORE_READ(file, private_data);
	void *used = used_object(file);

	/* A word of 0 can be anywhere on a stack. */
	if (!behind || behind == used)
		behind = file;
	if (!file || !has_on_stack(task, file, behind))
		return NULL;
	if (used && !has_on_stack(task, used, used))
		return NULL;
	return file;
}

/*
 * Returns the next address from @at on at which @task's stack has @task; 0 if there is
 * none.
 */
static __always_inline u64 find_task_on_stack(struct task_struct *task, u64 at)
{
	u64 itself = as_number(task);

	return find_on_stack(itself, itself, at, end_of_stack(task));
}

/*
 * Returns the file that @task polls, if it polls only one. In fs/select.c the thread
 * waits in a struct poll_wqueues, which points to the thread. The entry of a file
 * points back to this struct. Terminals and pipes open for both directions have two
 * entries.
 */
static __always_inline struct file *polled_file(struct task_struct *task)
{
	u64 at = BPF_CORE_READ(task, SAVED_STACK_POINTER);

	for (u32 i = 0; i < MAX_FOUND; i++) {
		struct poll_wqueues *queues;
		struct file *file;
		u32 entries;

		at = find_task_on_stack(task, at);
		if (!at)
			return NULL;
		queues = (void *)at - bpf_core_field_offset(struct poll_wqueues,
							    polling_task);
		at += sizeof(at);
		if (BPF_CORE_READ(queues, inline_entries[0].wait.private) !=
		    queues)
			continue;
		entries = BPF_CORE_READ(queues, inline_index);
		file = BPF_CORE_READ(queues, inline_entries[0].filp);
		if (entries == 1 ||
		    (entries == 2 &&
		     BPF_CORE_READ(queues, inline_entries[1].filp) == file))
			return file;
	}
	return NULL;
}

static __always_inline struct address_space *
page_mapping(struct wait_page_queue *queue)
{
	struct wait_page_queue___of_pages *old = (void *)queue;

	if (bpf_core_field_exists(old->page))
		return BPF_CORE_READ(old, page, mapping);
	return BPF_CORE_READ(queue, folio, mapping);
}

/*
 * Returns the file of the page for which @task waits in a page fault. In mm/filemap.c
 * the thread waits in a struct wait_page_queue, which points to the thread. This struct
 * is an element of a list, possibly the only element.
 */
static __always_inline struct inode *faulted_inode(struct task_struct *task)
{
	u64 at = BPF_CORE_READ(task, SAVED_STACK_POINTER);

	for (u32 i = 0; i < MAX_FOUND; i++) {
		struct wait_queue_entry *wait;
		struct wait_page_queue *queue;
		struct address_space *mapping;
		struct list_head *entry;

		at = find_task_on_stack(task, at);
		if (!at)
			return NULL;
		wait = (void *)at -
		       bpf_core_field_offset(struct wait_queue_entry, private);
		entry = (void *)wait +
			bpf_core_field_offset(struct wait_queue_entry, entry);
		queue = (void *)wait -
			bpf_core_field_offset(struct wait_page_queue, wait);
		at += sizeof(at);
		if (BPF_CORE_READ(entry, next, prev) != entry)
			continue;
		mapping = page_mapping(queue);
		/* The mapping of anonymous memory has a mark in these bits. */
		if (mapping && !((u64)mapping & 3))
			return BPF_CORE_READ(mapping, host);
	}
	return NULL;
}

#endif
