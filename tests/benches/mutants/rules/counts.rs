//! What counts and how it is summed: `events.h`, `intervals.h`, `counts.h`, `oncputime.bpf.c`,
//! `offcputime.bpf.c`.

use crate::mutant::Expected::{Caught, SameHere};
use crate::mutant::Mutant;

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        rule: "what can wait wakes nobody",
        file: "include/events.h",
        change: (
            "waiting < EVENTS_BYTES / 2 ? BPF_RB_NO_WAKEUP :",
            "waiting < EVENTS_BYTES / 2 ? 0 :",
        ),
        expected: Caught(&["alone::cost::a_tool_is_not_woken_by_the_stacks_that_it_is_sent"]),
    },
    Mutant {
        rule: "half of the room being taken wakes user space",
        file: "include/events.h",
        change: ("waiting < EVENTS_BYTES / 2 ?", "waiting <= EVENTS_BYTES ?"),
        expected: SameHere("it looks every 50 ms, and 80 MB a second are not sent"),
    },
    Mutant {
        rule: "-m leaves out what is shorter",
        file: "include/clock/intervals.h",
        change: (
            "length >= min_interval && length <= max_interval",
            "length > 0 && length <= max_interval",
        ),
        expected: Caught(&[
            "timed::clock::thresholds::sleeps_of_200_us_vanish_under_a_millisecond",
        ]),
    },
    Mutant {
        rule: "-M leaves out what is longer",
        file: "include/clock/intervals.h",
        change: (
            "length >= min_interval && length <= max_interval",
            "length >= min_interval",
        ),
        expected: Caught(&["timed::clock::thresholds::intervals_above_the_maximum_are_left_out"]),
    },
    Mutant {
        rule: "the bounds themselves are within",
        file: "include/clock/intervals.h",
        change: (
            "length >= min_interval && length <= max_interval",
            "length > min_interval && length < max_interval",
        ),
        expected: SameHere("no interval can be had to the nanosecond"),
    },
    Mutant {
        rule: "--state 0 takes who was still runnable",
        file: "include/clock/intervals.h",
        change: ("return !state;", "return state;"),
        expected: Caught(&["together::targets::a_state_mask_chooses_intervals"]),
    },
    Mutant {
        rule: "--state takes the states in its mask",
        file: "include/clock/intervals.h",
        change: ("(state & state_mask)", "state"),
        expected: Caught(&["together::targets::a_state_mask_chooses_intervals"]),
    },
    Mutant {
        rule: "offcputime's bounds are on all of the time off the CPU",
        file: "src/offcputime.bpf.c",
        change: ("!length_is_wanted(length)", "!length_is_wanted(runnable)"),
        expected: Caught(&[
            "timed::clock::thresholds::intervals_between_minimum_and_maximum_are_kept",
        ]),
    },
    Mutant {
        rule: "samples are taken in the window only",
        file: "src/oncputime.bpf.c",
        change: ("if (!now || window_is_over(now))", "if (!now)"),
        expected: Caught(&["timed::clock::thread_states::the_window_is_all_that_counts"]),
    },
    Mutant {
        rule: "the idle task is sampled on request",
        file: "src/oncputime.bpf.c",
        change: (": !include_idle)", ": include_idle)"),
        expected: Caught(&["alone::idle::idle_is_shown_on_request_only"]),
    },
    Mutant {
        rule: "threads are told apart on request",
        file: "src/oncputime.bpf.c",
        change: (
            "		if (per_thread)
			key.tid = namespace_tid(task);
",
            "",
        ),
        expected: Caught(&["together::printed::stacks::per_thread_tells_threads_apart"]),
    },
    Mutant {
        rule: "programs count into the map that user space is not draining",
        file: "include/counts.h",
        change: (
            "counts_are_odd ? &counts_odd : &counts_even",
            "counts_are_odd ? &counts_even : &counts_even",
        ),
        expected: Caught(&["checks/counts::programs_count_where_user_space_does_not_drain"]),
    },
    Mutant {
        rule: "a map three quarters full asks to be drained",
        file: "include/counts.h",
        change: (
            "counts_used < COUNTS_ENTRIES / 4 * 3 || drain_asked",
            "counts_used < COUNTS_ENTRIES * 4 || drain_asked",
        ),
        expected: Caught(&[
            "checks/counts::a_map_three_quarters_full_asks_to_be_drained_and_a_full_one_says_what_is_lost",
        ]),
    },
    Mutant {
        rule: "an interval that finds no room is lost, and said to be",
        file: "include/counts.h",
        change: (
            "			__sync_fetch_and_add(&lost.counts, weight->events);
",
            "",
        ),
        expected: Caught(&[
            "checks/counts::a_map_three_quarters_full_asks_to_be_drained_and_a_full_one_says_what_is_lost",
        ]),
    },
    Mutant {
        rule: "the same again adds up",
        file: "include/counts.h",
        change: ("&tally->blocked, weight->blocked", "&tally->blocked, 0"),
        expected: Caught(&["timed::clock::accounting::a_threads_stacks_add_up_to_its_clock"]),
    },
    Mutant {
        rule: "the longest interval is kept",
        file: "include/counts.h",
        change: (
            "if (weight->longest > tally->longest)",
            "if (weight->longest < tally->longest)",
        ),
        expected: Caught(&[
            "checks/counts::the_same_again_adds_up_and_the_longest_and_the_shortest_are_kept",
        ]),
    },
    Mutant {
        rule: "the shortest interval is kept",
        file: "include/counts.h",
        change: (
            "if (weight->shortest < tally->shortest)",
            "if (weight->shortest > tally->shortest)",
        ),
        expected: Caught(&[
            "checks/counts::the_same_again_adds_up_and_the_longest_and_the_shortest_are_kept",
        ]),
    },
    Mutant {
        rule: "the squares of lengths add up",
        file: "include/counts.h",
        change: ("&tally->squares, weight->squares", "&tally->squares, 0"),
        expected: Caught(&[
            "checks/counts::the_same_again_adds_up_and_the_longest_and_the_shortest_are_kept",
        ]),
    },
    Mutant {
        rule: "two CPUs that put the same key at once add up",
        file: "include/counts.h",
        change: (
            "bpf_map_update_elem(map, key, weight, BPF_NOEXIST)",
            "bpf_map_update_elem(map, key, weight, BPF_ANY)",
        ),
        expected: SameHere("two CPUs would have to put one key between the same two instructions"),
    },
    Mutant {
        rule: "a CPU that counts is waited for",
        file: "include/counts.h",
        change: ("return here && *here;", "return here && false;"),
        expected: Caught(&["checks/counts::a_cpu_that_counts_says_so"]),
    },
];
