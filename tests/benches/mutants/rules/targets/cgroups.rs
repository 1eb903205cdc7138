//! Targets that are cgroups: `cgroups.h`, `awaited_cgroups.h`, `moves.h`, and what they ask of
//! the clock.

use crate::mutant::Expected::{Caught, SameHere};
use crate::mutant::Mutant;

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        rule: "what is below a cgroup is in it",
        file: "include/targets/cgroups.h",
        change: (
            "cgroup = BPF_CORE_READ(cgroup, self.parent, cgroup);",
            "cgroup = NULL;",
        ),
        expected: Caught(&["together::cgroups::what_is_in_a_cgroup_or_below_it_is_measured"]),
    },
    Mutant {
        rule: "whether a cgroup is in a target is found out once",
        file: "include/targets/cgroups.h",
        change: (
            "	bpf_map_update_elem(&cgroup_membership, &id, &is_member, BPF_ANY);\n",
            "",
        ),
        expected: SameHere("it is found out again, which takes longer"),
    },
    Mutant {
        rule: "bcc's filters come on top of another choice",
        file: "include/targets/filter.h",
        change: ("if (!is_let_through(task))", "if (false)"),
        expected: Caught(&["together::cgroups::bccs_maps_come_on_top_of_another_choice"]),
    },
    Mutant {
        rule: "who moves is measured from the move on, and up to it",
        file: "include/clock/moves.h",
        change: (
            "*noted > moves_followed && *noted < now ?",
            "*noted > moves_followed && *noted > now ?",
        ),
        expected: Caught(&["timed::cgroups::only_the_time_inside_counts"]),
    },
    Mutant {
        rule: "a note that was followed says nothing any more",
        file: "include/clock/moves.h",
        change: ("noted && *noted > moves_followed &&", "noted &&"),
        expected: SameHere("a thread that was born unseen would have to be seen after a move"),
    },
    Mutant {
        rule: "a thread that dies where it is not measured is closed at the move",
        file: "include/clock/thread_clock.h",
        change: (
            "	if (thread && now)\n		leave(",
            "	if (thread && !now)\n		leave(",
        ),
        expected: Caught(&["timed::cgroups::a_tool_that_is_late_takes_the_time_from_the_kernel"]),
    },
    Mutant {
        rule: "a thread that comes again has another stack",
        file: "include/clock/thread_record.h",
        change: ("if (!by_membership || since == window_start)", "if (since)"),
        expected: Caught(&["timed::cgroups::who_comes_again_has_the_stack_that_it_has_then"]),
    },
    Mutant {
        rule: "whoever deletes a record tells its account",
        file: "include/clock/thread_record.h",
        change: (
            "if (bpf_map_delete_elem(&threads, &key) && by_membership)",
            "if (bpf_map_delete_elem(&threads, &key) && false)",
        ),
        expected: SameHere("a thread would have to die while user space closes its record"),
    },
    Mutant {
        rule: "of a process with one thread the record tells whether a move matters",
        file: "include/clock/clock_events.h",
        change: ("is_measured(task) == !!find_thread(task))", "false)"),
        expected: SameHere("all moves on the machine are followed then, which takes longer"),
    },
    Mutant {
        rule: "a move that does not matter for one thread may matter for others",
        file: "include/clock/clock_events.h",
        change: (
            "BPF_CORE_READ(task, signal, nr_threads) == 1) &&",
            "true) &&",
        ),
        expected: Caught(&[
            "timed::cgroups::threads_that_move_to_where_their_leader_is_count_from_then_on",
        ]),
    },
    Mutant {
        rule: "where a thread is off the CPU is known if it has not run since",
        file: "include/stacks/stack_edges.h",
        change: (
            "return !task->on_cpu && time_run(task) == thread->ran_before;",
            "return false;",
        ),
        expected: Caught(&["timed::cgroups::only_the_time_inside_counts"]),
    },
    Mutant {
        rule: "a span off the CPU ends where its thread leaves",
        file: "include/spans/waiting_spans.h",
        change: (
            "waiting.end = moved_by(task, now);",
            "waiting.end = thread->off_since;",
        ),
        expected: Caught(&["timed::cgroups::cpudist_counts_the_time_off_the_cpu_inside"]),
    },
    Mutant {
        rule: "a cgroup that is waited for is a target from its birth",
        file: "include/targets/awaited_cgroups.h",
        change: ("	if (*below)\n		note_cgroup(", "	if (true)\n		note_cgroup("),
        expected: Caught(&[
            "together::cgroups::awaited::a_cgroup_that_is_not_there_yet_is_waited_for",
        ]),
    },
    Mutant {
        rule: "what leads to a cgroup that is waited for counts at its own level alone",
        file: "include/targets/awaited_cgroups.h",
        change: (
            "level = bpf_map_lookup_elem(&awaited_below, &above);",
            "level = bpf_map_lookup_elem(&awaited_below, &id);",
        ),
        expected: Caught(&[
            "together::cgroups::awaited::a_cgroup_that_is_not_there_yet_is_waited_for",
        ]),
    },
    Mutant {
        rule: "a unit lies below slices and users' systemd alone",
        file: "include/targets/awaited_cgroups.h",
        change: (
            "if (bpf_map_lookup_elem(&holding_units, &above)) {",
            "if (true) {",
        ),
        expected: Caught(&[
            "together::cgroups::awaited::a_unit_is_waited_for_wherever_systemd_puts_it",
        ]),
    },
    Mutant {
        rule: "a slice that comes holds units, too",
        file: "include/targets/awaited_cgroups.h",
        change: ("			note_cgroup(&holding_units, id, 1);\n", "			;\n"),
        expected: Caught(&[
            "together::cgroups::awaited::a_unit_is_waited_for_wherever_systemd_puts_it",
        ]),
    },
    Mutant {
        rule: "the first who moves to a cgroup that is waited for begins the window",
        file: "include/targets/awaited_cgroups.h",
        change: ("	note_first((void *)ctx[2]);\n", ""),
        expected: Caught(&[
            "together::cgroups::awaited::the_first_in_an_empty_cgroup_is_waited_for",
        ]),
    },
    Mutant {
        rule: "who is born in a cgroup that is waited for is a member",
        file: "include/targets/awaited_cgroups.h",
        change: ("	note_first((void *)ctx[0]);\n", ""),
        expected: Caught(&[
            "together::cgroups::awaited::who_is_born_in_an_empty_cgroup_is_waited_for",
        ]),
    },
];
