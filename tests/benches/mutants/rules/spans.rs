//! cpudist: `span_counts.h`, `span_intervals.h`, `running_spans.h`,
//! `waiting_spans.h`, `cpudist.bpf.c`.

use crate::mutant::Expected::{Caught, SameHere};
use crate::mutant::Mutant;

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        rule: "64 buckets to a power of two",
        file: "include/spans/span_counts.h",
        change: (
            "(shift << SUB_BUCKET_BITS) + (length >> shift);",
            "(shift << SUB_BUCKET_BITS) + (length >> shift) + 1;",
        ),
        expected: Caught(&["timed::spans::spans_are_in_the_buckets_they_belong_to"]),
    },
    Mutant {
        rule: "buckets of milliseconds are of 15625 / 2^14 ns",
        file: "include/spans/span_counts.h",
        change: ("(length << 14) / 15625", "(length << 14) / 15000"),
        expected: Caught(&["timed::spans::spans_are_in_the_buckets_they_belong_to"]),
    },
    Mutant {
        rule: "the longest span is known to the nanosecond",
        file: "include/spans/span_counts.h",
        change: (
            "if (length > counts->longest)",
            "if (length < counts->longest)",
        ),
        expected: Caught(&[
            "timed::spans::spans_are_in_the_buckets_they_belong_to",
            "timed::spans::percentiles_are_those_that_the_program_measured",
        ]),
    },
    Mutant {
        rule: "a key that pushes another one out moves that to the sums",
        file: "include/spans/span_counts.h",
        change: (
            "		if (place->sum.spans)\n",
            "		if (place->sum.spans > ~0ULL >> 1)\n",
        ),
        expected: Caught(&["checks/spans::spans_of_many_owners_add_up_in_their_interval"]),
    },
    Mutant {
        rule: "what is pushed out keeps its interval",
        file: "include/spans/span_counts.h",
        change: ("recent->key.slot = slot;", "recent->key.slot = !slot;"),
        expected: Caught(&["timed::spans::the_spans_of_64_threads_are_their_switches"]),
    },
    Mutant {
        rule: "sums go to the map that user space is not draining",
        file: "include/spans/span_counts.h",
        change: (
            "sums_are_odd ? &sums_odd : &sums_even",
            "sums_are_odd ? &sums_even : &sums_even",
        ),
        expected: Caught(&["timed::spans::running_and_idle_fill_every_cpu_in_every_interval"]),
    },
    Mutant {
        rule: "sums of one key add up",
        file: "include/spans/span_counts.h",
        change: ("&sum->total, recent->sum.total", "&sum->total, 0"),
        expected: Caught(&["checks/spans::spans_of_many_owners_add_up_in_their_interval"]),
    },
    Mutant {
        rule: "a span over an interval's end is split there",
        file: "include/spans/running_spans.h",
        change: ("		if (since < end) {\n", "		if (since > end) {\n"),
        expected: Caught(&["timed::spans::running_and_idle_fill_every_cpu_in_every_interval"]),
    },
    Mutant {
        rule: "what is after an interval's end counts in the other slot",
        file: "include/spans/running_spans.h",
        change: ("		slot = !slot;\n", ""),
        expected: Caught(&["timed::spans::running_and_idle_fill_every_cpu_in_every_interval"]),
    },
    Mutant {
        rule: "who runs at the window's start is noted",
        file: "include/spans/running_spans.h",
        change: (
            "	if (!since)
		since = window_start;
",
            "	if (!since)
		since = now;
",
        ),
        expected: Caught(&["checks/running::nobody_who_is_measured_runs_since_the_window_opened"]),
    },
    Mutant {
        rule: "the span of whoever still runs is split at an interval's end",
        file: "include/spans/running_spans.h",
        change: (
            "if (now > end && since < end) {",
            "if (now > end && since > end) {",
        ),
        expected: Caught(&["timed::spans::running_and_idle_fill_every_cpu_in_every_interval"]),
    },
    Mutant {
        rule: "the idle task counts on request",
        file: "include/spans/running_spans.h",
        change: ("return include_idle;", "return !include_idle;"),
        expected: Caught(&["together::printed::spans::processes_and_threads_are_told_apart"]),
    },
    Mutant {
        rule: "a container shows its own threads only",
        file: "include/spans/running_spans.h",
        change: (
            "(!pid_namespace || namespace_tid(task));",
            "(!pid_namespace || tid);",
        ),
        expected: Caught(&[
            "together::printed::spans::a_container_sees_its_own_threads_by_its_own_numbers",
        ]),
    },
    Mutant {
        rule: "who leaves may have changed its ID since it came",
        file: "include/spans/running_spans.h",
        change: (
            "leaves = cpu->task == (u64)prev ||
		 runs_measured(",
            "leaves = runs_measured(",
        ),
        expected: Caught(&["timed::spans::threads_of_a_container_are_seen_to_their_end"]),
    },
    Mutant {
        rule: "the scheduler knows when a hidden switch was",
        file: "include/spans/running_spans.h",
        change: (
            "now - earlier(time_since_switch_in(task), now - since)",
            "now",
        ),
        expected: Caught(&["checks/running::a_hidden_arrival_was_when_the_thread_got_its_cpu"]),
    },
    Mutant {
        rule: "an end that has come is refused",
        file: "include/spans/span_intervals.h",
        change: ("INTERVAL_NOTICE_NS > interval_end(word)", "0 > word"),
        expected: Caught(&["checks/intervals::an_end_that_has_come_is_refused"]),
    },
    Mutant {
        rule: "a thread that was off the CPU at an interval's end leaves a note",
        file: "include/spans/waiting_spans.h",
        change: (
            "		if (since < end)\n			note_return",
            "		if (since > end)\n			note_return",
        ),
        expected: Caught(&["checks/waiting::of_a_wait_over_the_end_only_what_is_after_it_counts"]),
    },
    Mutant {
        rule: "of a span only what is in the interval counts there",
        file: "include/spans/waiting_spans.h",
        change: (
            "	if (since < start)\n		since = start;",
            "	if (since > start)\n		since = start;",
        ),
        expected: Caught(&[
            "checks/waiting::of_a_wait_from_before_the_interval_only_the_rest_counts",
        ]),
    },
    Mutant {
        rule: "what ends after an interval's end counts in the other slot",
        file: "include/spans/waiting_spans.h",
        change: ("		slot = !slot;\n", ""),
        expected: Caught(&["checks/waiting::of_a_wait_over_the_end_only_what_is_after_it_counts"]),
    },
    Mutant {
        rule: "who is off the CPU at an interval's end is read",
        file: "include/spans/waiting_spans.h",
        change: (
            "if (waiting.off_since < waiting.end &&",
            "if (waiting.off_since > waiting.end &&",
        ),
        expected: Caught(&["timed::spans::a_sleeper_fills_every_interval_to_the_nanosecond"]),
    },
    Mutant {
        rule: "whether a sleeper is awake at an interval's end the kernel knows",
        file: "include/spans/waiting_spans.h",
        change: (
            "|| !state ||
	    state == TASK_WAKING)",
            "|| (state && thread->woken_early))",
        ),
        expected: Caught(&["timed::wakers::early::a_later_wait_is_blocked_in_every_interval"]),
    },
    Mutant {
        rule: "--blocked ends with the wake-up",
        file: "include/spans/waiting_spans.h",
        change: ("		until = woken;\n", "		until -= 0;\n"),
        expected: Caught(&["timed::waiting_intervals::blocked_and_runnable_are_all_of_it"]),
    },
    Mutant {
        rule: "--runq begins with the wake-up",
        file: "include/spans/waiting_spans.h",
        change: ("		since = woken;\n", "		since += 0;\n"),
        expected: Caught(&["timed::waiting_intervals::blocked_and_runnable_are_all_of_it"]),
    },
    Mutant {
        rule: "the name of an owner that ends is kept",
        file: "src/cpudist.bpf.c",
        change: ("	if (owner)\n", "	if (!owner)\n"),
        expected: Caught(&["together::printed::spans::one_that_ended_still_has_its_name"]),
    },
    Mutant {
        rule: "a process has its leader's name",
        file: "src/cpudist.bpf.c",
        change: (
            "BPF_CORE_READ_STR_INTO(&comm, task, group_leader, comm);",
            "BPF_CORE_READ_STR_INTO(&comm, task, comm);",
        ),
        expected: Caught(&["timed::waiting_intervals::a_process_that_ended_has_its_leaders_name"]),
    },
    Mutant {
        rule: "of lengths beyond 13 days only the sum is exact",
        file: "include/spans/span_counts.h",
        change: (
            "	if (length >> LONGEST_BITS)
		return SPAN_BUCKETS - 1;
	if (in_milliseconds)",
            "	if (in_milliseconds)",
        ),
        expected: SameHere("nobody waits for 13 days; without it no room is overrun either"),
    },
];
