//! Kernel stacks that were unwound before: `kernel_stack_cache.h`, and its use.

use crate::mutant::Expected::{Caught, SameHere};
use crate::mutant::Mutant;

const FILE: &str = "include/stacks/kernel_stack_cache.h";
const IS_THE_STACK: &str = "checks/kernel_stacks::what_is_cached_is_the_stack";

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        rule: "a kernel stack is taken from the cache if all return addresses are where they were",
        file: FILE,
        change: (
            "			if (stack->words[saved_index(cached->offsets[i])] !=
			    cached->words[i])
				break;
",
            "",
        ),
        expected: Caught(&[IS_THE_STACK]),
    },
    Mutant {
        rule: "and the one into the entry code",
        file: FILE,
        change: (
            "if (!cached || !cached->id || cached->root != root)",
            "if (!cached || !cached->id || !root)",
        ),
        expected: Caught(&[IS_THE_STACK]),
    },
    Mutant {
        rule: "all that the helper tells are noted, up to the last",
        file: FILE,
        change: (
            "	if (stack->found + 1 == stack->depth &&
	    word == event",
            "	if (stack->found &&
	    word == event",
        ),
        expected: Caught(&[
            "checks/kernel_stacks::a_stack_with_another_address_in_a_return_addresss_place_is_not_cached",
        ]),
    },
    Mutant {
        rule: "and wherever they lie",
        file: FILE,
        change: (
            "		if (!may_be_told(stack, word) && !may_be_scheduler(stack, word))
",
            "		if (word != room->event.frames[frame_index(stack->found)] &&
		    !may_be_scheduler(stack, word))
",
        ),
        expected: Caught(&[IS_THE_STACK]),
    },
    Mutant {
        rule: "a stack on which the kernel was interrupted is not cached",
        file: FILE,
        change: (
            "		if (stack->noted >= CACHED_KERNEL_WORDS ||
		    may_be_interrupted(stack, offset)) {",
            "		if (stack->noted >= CACHED_KERNEL_WORDS) {",
        ),
        expected: Caught(&[IS_THE_STACK]),
    },
    Mutant {
        rule: "what has changed is forgotten only behind the last return address",
        file: FILE,
        change: (
            "if (!stack->complete || may_be_scheduler(stack, word) ||",
            "if (may_be_scheduler(stack, word) ||",
        ),
        expected: SameHere(
            "where two stacks with the same frames first differ is one of the scheduler's",
        ),
    },
    Mutant {
        rule: "what has changed there is forgotten",
        file: FILE,
        change: (
            "cached->id == id && keep_return_addresses(slot)",
            "cached->id == id && !slot",
        ),
        expected: SameHere("it costs time only: fewer stacks are found in the cache"),
    },
    Mutant {
        rule: "the stack of a thread that an iterator looks at is not cached",
        file: "include/stacks/stack_capture.h",
        change: (
            "bool may_be_cached = kind == SCRATCH_HOOK;",
            "bool may_be_cached = true;",
        ),
        expected: SameHere("the thread would have to run in the microseconds of a comparison"),
    },
];
