//! Which stack it is, and whose: `stack_capture.h`, `stack_copy.h`,
//! `stack_edges.h`, `task.h`.

use crate::mutant::Expected::{Caught, SameHere, Untested};
use crate::mutant::Mutant;

const EXECS: &str =
    "alone::stacks::changes::a_program_executed_later_is_known_from_its_first_wait_on";
const LATE: &str = "alone::stacks::changes::a_library_opened_later_is_known_from_its_first_wait_on";

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        rule: "a stack's hash is of every frame",
        file: "include/stack_capture.h",
        change: (
            "hash = hash_word(hash, event->frames[i]);",
            "hash = hash_word(hash, 0);",
        ),
        expected: Caught(&[
            "alone::clock::accounting::time_off_cpu_is_in_the_function_that_waited",
        ]),
    },
    Mutant {
        rule: "a stack's hash is of its depth",
        file: "include/stack_capture.h",
        change: ("stack_id(hash_word(hash, depth))", "stack_id(hash)"),
        expected: SameHere("each frame has stirred the hash already"),
    },
    Mutant {
        rule: "a stack's addresses mean something with their process only",
        file: "include/stack_capture.h",
        change: (
            "hash = hash_word(event->instance,",
            "hash = hash_word(0 & event->instance,",
        ),
        expected: Untested(
            "two programs with the same addresses, which need one place without randomization",
        ),
    },
    Mutant {
        rule: "a stack whose frames are there is not sent again",
        file: "include/stack_capture.h",
        change: (
            "return slot && *slot != hash ? slot : NULL;",
            "return slot;",
        ),
        expected: SameHere("it costs time only: user space keeps each stack once"),
    },
    Mutant {
        rule: "a stack that was pushed out is sent again",
        file: "include/stack_capture.h",
        change: (
            "return slot && *slot != hash ? slot : NULL;",
            "return slot && !*slot ? slot : NULL;",
        ),
        expected: Caught(&["alone::scale::all_of_4096_paths_are_seen_off_cpu"]),
    },
    Mutant {
        rule: "a stack that found no room is sent when next seen",
        file: "include/stack_capture.h",
        change: (
            "	else
		*slot = hash;
	return hash;",
            "	*slot = hash;
	return hash;",
        ),
        expected: Untested("a tool that is stopped until the ring buffer is full"),
    },
    Mutant {
        rule: "a sample in user space has no kernel stack",
        file: "include/stack_capture.h",
        change: (
            "bytes ? publish_stack(SCRATCH_HOOK, bytes) : STACK_NONE",
            "publish_stack(SCRATCH_HOOK, bytes)",
        ),
        expected: Caught(&["alone::scale::thousands_of_paths_are_sampled_without_a_loss"]),
    },
    Mutant {
        rule: "the kernel stack of a task that runs again is another one",
        file: "include/stack_capture.h",
        change: (
            "if (!room || (u64)task == bpf_get_current_task())",
            "if (!room)",
        ),
        expected: Untested("the kernel stack of a wait whose end was hidden"),
    },
    Mutant {
        rule: "a leaf that no system call left is looked up as it is",
        file: "include/stack_capture.h",
        change: (
            "event->leaf_is_exact = !regs_entered_by_syscall(regs);",
            "event->leaf_is_exact = false;",
        ),
        expected: Caught(&["alone::stacks::chains::samples_anywhere_in_c_are_of_its_chain"]),
    },
    Mutant {
        rule: "exec makes another program of a process",
        file: "include/task.h",
        change: (
            "	return BPF_CORE_READ(task, group_leader, start_time) +
	       BPF_CORE_READ(task, self_exec_id);",
            "	return BPF_CORE_READ(task, group_leader, start_time);",
        ),
        expected: Caught(&[EXECS]),
    },
    Mutant {
        rule: "tables are those of one program",
        file: "include/stack_capture.h",
        change: (
            "if (!process || process->instance != event->instance)",
            "if (!process)",
        ),
        expected: Caught(&[EXECS]),
    },
    Mutant {
        rule: "a process without tables sends a copy of its stack",
        file: "include/stack_capture.h",
        change: (
            "		id = copy_stack(room);
		return id == STACK_MISSED ? STACK_NONE : id;",
            "		return STACK_NONE;",
        ),
        expected: Caught(&[EXECS]),
    },
    Mutant {
        rule: "an address in no mapping sends a copy of the stack",
        file: "include/unwind.h",
        change: (
            "		if (!mapping)
			return WALK_NO_MAPPING;",
            "		if (!mapping)
			return WALK_NO_RULE;",
        ),
        expected: Caught(&[LATE]),
    },
    Mutant {
        rule: "a copy starts where the walk did",
        file: "include/stack_capture.h",
        change: (
            "		start_walk(walk, regs, exact);
		walk->depth = depth;",
            "		walk->depth = depth;",
        ),
        expected: Caught(&[LATE]),
    },
    Mutant {
        rule: "a change in the pages of code has the mappings read again",
        file: "include/stack_capture.h",
        change: ("	return before;\n", "	return false;\n"),
        expected: Untested("a library in the place of another one, opened between two waits"),
    },
    Mutant {
        rule: "a fork is walked by its parent's tables",
        file: "include/stack_capture.h",
        change: (
            "	if (!process)
		process = find_forks_process(event, task, &tables);
",
            "",
        ),
        expected: Caught(&["alone::stacks::changes::children_are_known_from_their_first_wait_on"]),
    },
    Mutant {
        rule: "a fork that executed something is not",
        file: "include/task.h",
        change: (
            "		return NULL;
	return parent;",
            "		return parent;
	return parent;",
        ),
        expected: Untested("a child that executed a program of the same size at the same place"),
    },
    Mutant {
        rule: "copies are rationed",
        file: "include/stack_copy.h",
        change: (
            "if (budget->left <= 0 || copies_allowed <= 0)",
            "if (false)",
        ),
        expected: SameHere("it costs time only: more copies come than there could"),
    },
    Mutant {
        rule: "who is off the CPU at the window's end has its kernel stack read",
        file: "include/stack_edges.h",
        change: (
            "open.kernel = capture_saved_kernel_stack(task, SCRATCH_ITERATOR);",
            "open.kernel = STACK_MISSED;",
        ),
        expected: Caught(&["alone::clock::sleepers::sleep_1000_has_the_whole_window"]),
    },
    Mutant {
        rule: "who is off the CPU at the window's end sleeps, or waits for a CPU",
        file: "include/stack_edges.h",
        change: (
            "open.task_state = task_state(task);",
            "open.task_state = 0;",
        ),
        expected: Caught(&["alone::clock::sleepers::a_stopped_process_is_blocked"]),
    },
    Mutant {
        rule: "a stack read before the window holds until the thread leaves a CPU",
        file: "include/stack_edges.h",
        change: (
            "		seeded.switches = thread->switches;
",
            "		seeded.switches = 0;
",
        ),
        expected: Caught(&["alone::stacks::chains::c_that_waited_before_is_as_complete"]),
    },
    Mutant {
        rule: "who left the CPU after the window has no open interval",
        file: "include/stack_edges.h",
        change: (
            "	if (!is_off_cpu(thread, open.off_since) ||
	    window_is_over(open.off_since))",
            "	if (!is_off_cpu(thread, open.off_since))",
        ),
        expected: SameHere("its length is nothing, and nothing is not shown"),
    },
];
