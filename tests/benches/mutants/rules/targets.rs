//! Who is measured, and who is new: `filter.h`, `children.h`, `newcomers.h`.

pub(crate) mod cgroups;

use crate::mutant::Expected::{Caught, SameHere};
use crate::mutant::Mutant;

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        rule: "a target's ID that is used again is another process",
        file: "include/targets/filter.h",
        change: (
            "process_started(task) <= targets_named_ns;",
            "process_started(task) > 0;",
        ),
        expected: Caught(&["together::targets::an_id_that_is_used_again_is_another_process"]),
    },
    Mutant {
        rule: "one of several targets is a process with its start",
        file: "include/targets/filter.h",
        change: (
            "if (started && *started == process_started(task))",
            "if (started)",
        ),
        expected: Caught(&["together::targets::an_id_that_is_used_again_is_another_process"]),
    },
    Mutant {
        rule: "what a target forks is a target",
        file: "include/targets/children.h",
        change: ("	    !make_target(child))", "	    false)"),
        expected: Caught(&["timed::trees::every_process_of_a_command_is_there_from_exec_on"]),
    },
    Mutant {
        rule: "nobody outside of the tree is a target",
        file: "include/targets/children.h",
        change: (
            "!is_target(task, pid, tid) ||",
            "(!is_target(task, pid, tid) && !child) ||",
        ),
        expected: Caught(&["timed::trees::a_fork_storm_is_all_there"]),
    },
    Mutant {
        rule: "a process that has been waited for makes room",
        file: "include/targets/children.h",
        change: ("		bpf_map_delete_elem(&target_pids, &pid);\n", "		;\n"),
        expected: SameHere(
            "there is room for all IDs where pid_max is 32768, as usual with few CPUs",
        ),
    },
    Mutant {
        rule: "a process is forgotten with its leader, which is the last",
        file: "include/targets/children.h",
        change: (
            "	if (task->pid != task->tgid)
		return 0;
	/* A child",
            "	/* A child",
        ),
        expected: SameHere("another thread started at another time"),
    },
    Mutant {
        rule: "a script that is waited for has its thread's name",
        file: "include/targets/children.h",
        change: (
            "	if (!found)\n		return false;\n	/* Where",
            "	if (true)\n		return false;\n	/* Where",
        ),
        expected: Caught(&["together::commands::the_first_of_a_name_is_waited_for"]),
    },
    Mutant {
        rule: "a program that is waited for has its file's name",
        file: "include/targets/children.h",
        change: (
            "if (bpf_map_lookup_elem(&awaited_programs, &file))",
            "if (false)",
        ),
        expected: Caught(&["together::commands::the_first_of_a_name_is_waited_for"]),
    },
    Mutant {
        rule: "what a target executes is looked at soon",
        file: "include/targets/newcomers.h",
        change: (
            "if (!is_target(task, task->tgid, task->pid) || !is_news())",
            "if (is_target(task, task->tgid, task->pid) || !is_news())",
        ),
        expected: Caught(&["timed::sampling::a_program_that_runs_for_25_ms_is_looked_at_in_time"]),
    },
];
