/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Layout of a running Java virtual machine. shared/languages/src/hotspot/layout.rs makes
 * it from the tables of the machine.
 */
#ifndef SYSTEMSCOPE_HOTSPOT_LAYOUT_H
#define SYSTEMSCOPE_HOTSPOT_LAYOUT_H

#include "kernel_types.h"

#define HOTSPOT_HEAPS 3

/* Part of the code cache: CodeHeap of share/memory/heap.hpp. */
struct hotspot_heap {
	/* Address of the first segment; all bits set if there is no such heap. */
	u64 low;
	/* Address of the map of segments. */
	u64 segments;
};

/* Layout of a running virtual machine: addresses, and offsets in bytes. */
struct hotspot_layout {
	/* Addresses of the code cache. */
	u64 code_start;
	u64 code_bytes;
	/* Sorted by address. */
	struct hotspot_heap heaps[HOTSPOT_HEAPS];
	u64 interpreter_start;
	u64 interpreter_bytes;
	/* Codelets in which the interpreter enters a method. */
	u64 entries_start;
	u64 entries_bytes;
	/* Address to which the first Java function of a native caller returns. */
	u64 call_stub_return;
	/* Blocks whose frames only the frame pointer shows, or 0. */
	u64 deoptimization;
	u64 uncommon_trap;
	/* Kind of compiled methods, in the bits of kind_mask. */
	u64 kind_mask;
	u64 compiled;
	/* Variable with the list of threads, or with the first of a chain of threads. */
	u64 threads;
	/* A class is at class_base + (value << class_shift). */
	u64 class_base;
	/* A reference leads to reference_base + (value << reference_shift). */
	u64 reference_base;
	/* Flag of a running collection. The number of collections is at collection_count behind. */
	u64 collects;
	/* Class AbstractOwnableSynchronizer; 0 if programs cannot read parked threads. */
	u64 ownable;
	/* Bits of the first word of a name that stay the same as long as the name lives. */
	u64 symbol_bits;
	/* In a pool of constants: its class. In a class: its name. */
	u16 pool_holder;
	u16 class_name;
	u16 unused[2];
	u16 reference_shift;
	u16 collection_count;
	/* Key of pthread_setspecific() with the thread; HOTSPOT_NO_KEY if unknown. */
	u16 thread_key;
	/* In a thread: its object. In this object: the thread, and what it is parked on. */
	u16 thread_object;
	u16 object_thread;
	u16 park_blocker;
	/* In a class: its superclass below Object. */
	u16 first_super;
	/* In an object of the class @ownable: the object of the thread that owns it. */
	u16 exclusive_owner;
	/* In the list: its length, and the address of its array. */
	u16 list_length;
	u16 list_array;
	/* In a thread. Offsets of 0 are unknown. */
	u16 next_thread;
	u16 system_thread;
	u16 stack_base;
	u16 pending_monitor;
	u16 waiting_monitor;
	u16 owner_id;
	u16 lock_stack_top;
	u16 lock_stack;
	/* In the thread of the system. */
	u16 thread_id;
	u16 pthread_id;
	/* In a monitor. */
	u16 monitor_owner;
	u16 monitor_object;
	/* In an object; 0 if its class cannot be read. */
	u16 class_offset;
	u16 class_shift;
	/* log2 of the size of a segment. */
	u16 segment_shift;
	/* In a block: bytes before the blob, and whether the block is used. */
	u16 block_header;
	u16 block_used;
	/* Bytes to read of a block, at most HOTSPOT_BLOCK_BYTES. */
	u16 block_bytes;
	/* In a block. HOTSPOT_CODE_IS_OFFSET says whether code_begin is an address. */
	u16 kind;
	u16 frame_size;
	u16 code_begin;
	u16 compile_id;
	u16 original_pc;
	u16 deoptimize;
	u16 deoptimize_handle;
	u16 verified_entry;
	u16 flags;
	/* In a ConstMethod: the words to read, its size, and the length of its code. */
	u16 const_method_bytes;
	u16 code_size;
	/* Offset of the bytecode's address from the frame pointer, in words. */
	s16 bytecode_slot;
};

/* Values of hotspot_layout.flags: fields are offsets in place of addresses. */
enum hotspot_flags {
	/* Offsets of the code and of handlers, from the blob. */
	HOTSPOT_CODE_IS_OFFSET = 1,
	/* The offset of the verified entry, from the code, in 16 bits. */
	HOTSPOT_ENTRY_IS_OFFSET = 2,
	/* Threads are a chain. */
	HOTSPOT_THREADS_ARE_CHAIN = 4,
	/* A monitor has the address of the reference to its object. */
	HOTSPOT_OBJECT_HAS_HANDLE = 8,
	/* An object has the address of its class in 64 bits. */
	HOTSPOT_CLASS_IS_ADDRESS = 16,
	/* A field of an object has the address of another object in 64 bits. */
	HOTSPOT_REFERENCE_IS_ADDRESS = 32,
	/* A thread has the address of the reference to its object. */
	HOTSPOT_THREAD_HAS_HANDLE = 64,
};

USER_SPACE_KNOWS(enum, hotspot_flags);
USER_SPACE_KNOWS(struct, hotspot_layout);

enum hotspot_limits {
	/* Value of hotspot_layout.thread_key. */
	HOTSPOT_NO_KEY = 0xffff,
	/* Maximum number of threads among which a holder is searched. */
	HOTSPOT_THREADS = 128,
	/* Objects that a thread can lock without monitors: LockStack::CAPACITY. */
	HOTSPOT_LOCK_STACK = 8,
	/* Capacity for the beginning of a block. */
	HOTSPOT_BLOCK_BYTES = 384,
	/* Maximum steps in the map of segments. */
	HOTSPOT_HOPS = 8,
	/* Maximum bytes from the stack pointer to the end of a frame. */
	HOTSPOT_FRAME_BYTES = 1 << 20,
	/* Maximum length of the code of a method. */
	HOTSPOT_CODE_BYTES = 1 << 26,
	/* Offsets in Method and ConstMethod, which are the same in all versions. */
	HOTSPOT_CONST_METHOD = 8,
	HOTSPOT_CONSTANTS = 8,
	/* Bytes read of a ConstMethod, from its pool of constants on. */
	HOTSPOT_METHOD_BYTES = 48,
	/*
	 * Words of an interpreted frame: below the frame pointer, and in all. The frame
	 * pointer points to the caller's, and the return address is above it:
	 * frame_x86.hpp.
	 */
	HOTSPOT_WORDS_BELOW = 8,
	HOTSPOT_FRAME_WORDS = 10,
	/* Indexes of the caller's stack pointer and of the method among these words. */
	HOTSPOT_SENDER_SP = 7,
	HOTSPOT_METHOD = 5,
	/* Words of the stack in which a stub's return address is searched for. */
	HOTSPOT_STUB_WORDS = 16,
	/* Maximum bytes from the stack pointer to the frame pointer of a stub. */
	HOTSPOT_STUB_BYTES = 256,
	/* Words above a frame's end in which its return address is searched for. */
	HOTSPOT_PUSHED_WORDS = 5,
};

USER_SPACE_KNOWS(enum, hotspot_limits);

#endif
