/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * List of the languages whose frames programs read, and the only place that branches on
 * a runtime's language. The header of the language `name` has
 *
 *  name_start()          finds the innermost frame of the current thread
 *  name_step()           notes a frame or an anchor, and steps to its caller
 *  name_read_function()  copies the memory that describes the function of a frame
 *  name_lock_holder()    returns the holder of the lock that all threads share
 *
 * Their parameters and results are those of the functions below, and name_step() has the
 * walk, the layout and the stack, which is not full. A language whose frames
 * are on the native stack has only
 *
 *  name_start()          tells which code the runtime generates
 *  name_unwind()         notes a frame in this code, and steps to its caller
 *  name_lock_holder()    returns the holder of the lock on which the thread waits
 */
#ifndef SYSTEMSCOPE_LANGUAGES_H
#define SYSTEMSCOPE_LANGUAGES_H

#include "languages/hotspot.h"
#include "languages/hotspot_locks.h"
#include "languages/php.h"
#include "languages/python.h"
#include "languages/ruby.h"
#include "languages/v8.h"

/* A test's object defines this, after the header of its language. */
#ifndef MORE_LANGUAGES
#define MORE_LANGUAGES(ONE)
#endif

/* One line for each language, and its #include above. */
#define LANGUAGES_WITH_CHAINS(ONE)                                             \
	ONE(PYTHON, python)                                                    \
	ONE(PHP, php)                                                          \
	ONE(RUBY, ruby)                                                        \
	ONE(V8, v8)                                                            \
	MORE_LANGUAGES(ONE)

/* Languages whose frames are on the native stack. */
#define LANGUAGES_ON_STACK(ONE) ONE(HOTSPOT, hotspot)

#define LANGUAGES(ONE)                                                         \
	LANGUAGES_ON_STACK(ONE)                                                \
	LANGUAGES_WITH_CHAINS(ONE)

#define LANGUAGE_NUMBER(NAME, name) LANGUAGE_##NAME,

enum language { LANGUAGE_NONE, LANGUAGES(LANGUAGE_NUMBER) };

USER_SPACE_KNOWS(enum, language);

#define IN_LANGUAGE(NAME, call)                                                \
	case LANGUAGE_##NAME:                                                  \
		return call;

/*
 * Finds the innermost frame of the current thread, whose pthread_self() is @self.
 * Returns CHAIN_GOES_ON if the thread has a frame, and CHAIN_ON_STACK if the native unwind
 * finds the frames.
 */
static __always_inline enum chain_end
start_chain(struct chain_walk *walk, struct language_layout *layout, u64 self)
{
#define START(NAME, name) IN_LANGUAGE(NAME, name##_start(walk, layout, self))
	switch (walk->language) {
		LANGUAGES(START)
	}
	return CHAIN_NO_THREAD;
}

/*
 * Notes the frame of @walk in generated code, and steps to its caller. @leaf: the user
 * registers, or NULL if the frame is not the leaf. Returns CHAIN_LEFT_CODE if the caller is
 * native code, and CHAIN_GOES_ON if it is generated code, too.
 */
static __always_inline enum chain_end
unwind_code(struct chain_walk *walk, struct language_layout *layout,
	    struct mixed_stack *stack, struct pt_regs *leaf)
{
#define UNWIND(NAME, name)                                                     \
	IN_LANGUAGE(NAME, name##_unwind(walk, layout, stack, leaf))
	switch (walk->language) {
		LANGUAGES_ON_STACK(UNWIND)
	}
	return CHAIN_BROKEN;
}

/*
 * Fills the pieces of @function, the function of @link. @base: the runtime's. Returns
 * the number of its bytes to send; 0 if a read fails.
 */
static __always_inline u64 read_function(struct interpreted_function *function,
					 u32 language,
					 struct language_layout *layout,
					 struct chain_link *link, u64 base)
{
#define READ_FUNCTION(NAME, name)                                              \
	IN_LANGUAGE(NAME, name##_read_function(function, layout, link, base))
	switch (language) {
		LANGUAGES_WITH_CHAINS(READ_FUNCTION)
	}
	return 0;
}

/*
 * Returns the ID of the thread that holds the runtime's lock, if @futex belongs to that
 * lock; else 0. @base: the runtime's. The result has the language in its upper bits, if
 * the wait for the lock is certain: see LOCK_LANGUAGE_SHIFT.
 */
static __always_inline u32 lock_holder_in(u32 language,
					  struct language_layout *layout,
					  u64 base, u64 futex)
{
#define LOCK_HOLDER(NAME, name)                                                \
	IN_LANGUAGE(NAME, holder_in_language(name##_lock_holder(layout, base,  \
								futex),        \
					     LANGUAGE_##NAME))
	switch (language) {
		LANGUAGES(LOCK_HOLDER)
	}
	return 0;
}

/*
 * Returns the address of the class of the object on which the current thread waits, if
 * the runtime has such objects; else 0.
 */
static __always_inline u64 lock_class_in(u32 language,
					 struct language_layout *layout)
{
	switch (language) {
	case LANGUAGE_HOTSPOT:
		return hotspot_lock_class(layout);
	}
	return 0;
}

#endif
