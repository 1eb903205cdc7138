//! Which stack it is, and whose: `stack_capture.h`, `stack_dump.h`,
//! `stack_edges.h`, `task.h`.

pub(crate) mod kernel_stack_cache;
pub(crate) mod unwind_cache;
pub(crate) mod unwinding;

use crate::mutant::Expected::{Caught, SameHere};
use crate::mutant::Mutant;

const EXECS: &str =
    "timed::stacks::changes::a_program_executed_later_is_known_from_its_first_wait_on";
const LATE: &str = "timed::stacks::changes::a_library_opened_later_is_known_from_its_first_wait_on";

const RETURNS: &str =
    "timed::stacks::returns::waits_that_end_and_waits_that_do_not_have_whole_stacks";

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        rule: "a stack taken at the return is that of the thread whose interval it is",
        file: "include/clock/returns.h",
        change: (
            "if (returning->task == (u64)task &&",
            "if (returning->task != (u64)task &&",
        ),
        expected: Caught(&[RETURNS]),
    },
    Mutant {
        rule: "a stack taken at the return is that of the return from the interval",
        file: "include/clock/returns.h",
        change: (
            "returning->switches == switch_count(untrusted(task)))",
            "returning->switches)",
        ),
        expected: Caught(&[
            "checks/returns::a_return_that_was_not_shown_leaves_its_interval_without_a_stack",
        ]),
    },
    Mutant {
        rule: "what counts waits for its thread's return",
        file: "include/clock/intervals.h",
        change: ("if (is_taken_at_return(key.user))", "if (0)"),
        expected: Caught(&[RETURNS]),
    },
    Mutant {
        rule: "who is not back at the window's end is listed",
        file: "include/stacks/stack_edges.h",
        change: (
            "thread->user != STACK_AT_RETURN",
            "thread->user == STACK_AT_RETURN",
        ),
        expected: Caught(&[RETURNS]),
    },
    Mutant {
        rule: "a stack's hash is of every frame",
        file: "include/stacks/stack_capture.h",
        change: ("room->event.frames[frame_index(first + i)]);", "0);"),
        expected: Caught(&[
            "timed::clock::accounting::time_off_cpu_is_in_the_function_that_waited",
        ]),
    },
    Mutant {
        rule: "a stack's hash is of its depth",
        file: "include/stacks/stack_capture.h",
        change: ("stack_id(hash_word(hash, depth))", "stack_id(hash)"),
        expected: SameHere("each frame has stirred the hash already"),
    },
    Mutant {
        rule: "a stack's addresses mean something with their process only",
        file: "include/stacks/stack_capture.h",
        change: (
            "hash_word(hash_word(0, event->instance),",
            "hash_word(hash_word(0, 0 & event->instance),",
        ),
        expected: Caught(&["checks/walk::walks_in_bpf_and_in_rust_agree"]),
    },
    Mutant {
        rule: "a stack whose frames are there is not sent again",
        file: "include/stacks/seen_stacks.h",
        change: (
            "return slot && *slot != hash ? slot : NULL;",
            "return slot;",
        ),
        expected: Caught(&[
            "checks/stacks::a_stack_is_sent_once_and_again_when_another_pushed_it_out",
        ]),
    },
    Mutant {
        rule: "a stack that was pushed out is sent again",
        file: "include/stacks/seen_stacks.h",
        change: (
            "return slot && *slot != hash ? slot : NULL;",
            "return slot && !*slot ? slot : NULL;",
        ),
        expected: Caught(&[
            "checks/stacks::a_stack_is_sent_once_and_again_when_another_pushed_it_out",
        ]),
    },
    Mutant {
        rule: "a stack that found no room is sent when next seen",
        file: "include/stacks/stack_capture.h",
        change: (
            "	else
		*slot = hash;
	return hash;",
            "	*slot = hash;
	return hash;",
        ),
        expected: Caught(&["checks/stacks::a_stack_that_found_no_room_is_sent_when_next_seen"]),
    },
    Mutant {
        rule: "a sample in user space has no kernel stack",
        file: "include/stacks/stack_capture.h",
        change: (
            "bytes ? publish_stack(SCRATCH_HOOK, bytes) : STACK_NONE",
            "publish_stack(SCRATCH_HOOK, bytes)",
        ),
        expected: Caught(&["timed::scale::thousands_of_paths_are_sampled_without_a_loss"]),
    },
    Mutant {
        rule: "the kernel stack of a task that runs again is another one",
        file: "include/stacks/stack_capture.h",
        change: (
            "	if ((u64)task == bpf_get_current_task())
		return STACK_MISSED;
",
            "",
        ),
        expected: Caught(&["checks/clock::a_hidden_arrival_was_when_the_thread_got_its_cpu"]),
    },
    Mutant {
        rule: "a leaf that no system call left is looked up as it is",
        file: "include/stacks/stack_capture.h",
        change: (
            "event->leaf_is_exact = !entered_by_syscall(regs->orig_ax);",
            "event->leaf_is_exact = false;",
        ),
        expected: Caught(&["timed::stacks::chains::samples_anywhere_in_c_are_of_its_chain"]),
    },
    Mutant {
        rule: "exec makes another program of a process",
        file: "include/task.h",
        change: (
            "	return BPF_CORE_READ(task, group_leader, start_time) +\n	       BPF_CORE_READ(task, self_exec_id);",
            "	return process_started(task);",
        ),
        expected: Caught(&[EXECS]),
    },
    Mutant {
        rule: "tables are those of one program",
        file: "include/stacks/stack_capture.h",
        change: (
            "if (!process || process->instance != event->instance)",
            "if (!process)",
        ),
        expected: SameHere(
            "it is asked once more, after the tables were read: another process would have to take the place in between",
        ),
    },
    Mutant {
        rule: "a process without tables sends a copy of its stack",
        file: "include/stacks/stack_capture.h",
        change: (
            "		id = dump_stack(room, kind);
		return id == STACK_MISSED ? STACK_NONE : id;",
            "		return STACK_NONE;",
        ),
        expected: Caught(&[EXECS]),
    },
    Mutant {
        rule: "an address in no mapping sends a copy of the stack",
        file: "include/stacks/unwind.h",
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
        file: "include/stacks/stack_capture.h",
        change: (
            "		start_walk(walk, exact);
		walk->depth = depth;",
            "		walk->depth = depth;",
        ),
        expected: Caught(&[LATE]),
    },
    Mutant {
        rule: "a change in the pages of code has the mappings read again",
        file: "include/stacks/stack_capture.h",
        change: ("	return before;\n", "	return false;\n"),
        expected: Caught(&["checks/stacks::more_or_less_code_has_the_mappings_read_again"]),
    },
    Mutant {
        rule: "a fork is walked by its parent's tables",
        file: "include/stacks/stack_capture.h",
        change: (
            "	if (!process)
		process = find_forks_process(room, task, &tables);
",
            "",
        ),
        expected: Caught(&["checks/stacks::a_fork_is_walked_by_its_parents_tables"]),
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
        expected: Caught(&["checks/stacks::a_fork_with_other_code_is_not"]),
    },
    Mutant {
        rule: "copies are rationed",
        file: "include/stacks/stack_dump.h",
        change: ("if (budget->left <= 0 || dumps_allowed <= 0)", "if (false)"),
        expected: SameHere("it costs time only: more copies come than there could"),
    },
    Mutant {
        rule: "code that has no tables yet has user space look often",
        file: "include/stacks/stack_dump.h",
        change: (
            "(is_news() || budget->left == DUMPS_OF_A_PROCESS)",
            "(budget->left == DUMPS_OF_A_PROCESS)",
        ),
        expected: SameHere(
            "of waits that take milliseconds there are not more copies until the next look than may be sent",
        ),
    },
    Mutant {
        rule: "who is off the CPU at the window's end has its kernel stack read",
        file: "include/stacks/stack_edges.h",
        change: (
            "open.kernel = capture_saved_kernel_stack(task, SCRATCH_ITERATOR);",
            "open.kernel = STACK_MISSED;",
        ),
        expected: Caught(&["timed::clock::sleepers::sleep_1000_has_the_whole_window"]),
    },
    Mutant {
        rule: "who is off the CPU at the window's end sleeps, or waits for a CPU",
        file: "include/stacks/stack_edges.h",
        change: (
            "open.task_state = task_state(task);",
            "open.task_state = 0;",
        ),
        expected: Caught(&["timed::clock::sleepers::a_stopped_process_is_blocked"]),
    },
    Mutant {
        rule: "a stack read before the window holds until the thread leaves a CPU",
        file: "include/stacks/stack_edges.h",
        change: (
            "		found.switches = thread->switches;
",
            "		found.switches = 0;
",
        ),
        expected: SameHere("it costs time only: the stack is read once more, in the window"),
    },
    Mutant {
        rule: "who left the CPU after the window has no open interval",
        file: "include/stacks/stack_edges.h",
        change: (
            "	if (!is_off_cpu(thread, open.off_since) ||
	    window_is_over(open.off_since))",
            "	if (!is_off_cpu(thread, open.off_since))",
        ),
        expected: SameHere("its length is nothing, and nothing is not shown"),
    },
];
