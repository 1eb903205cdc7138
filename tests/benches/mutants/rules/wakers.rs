//! Who ended a wait: `wakers.h`, `offwaketime.bpf.c`.

use crate::mutant::Expected::{Caught, SameHere};
use crate::mutant::Mutant;

const AS_LONG: &str = "timed::wakers::chain::a_chain_is_as_long_as_asked_for_and_ends_in_the_timer";
const EACH_OTHERS: &str =
    "timed::wakers::each_other::two_that_wake_each_other_are_each_others_wakers";

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        rule: "a chain goes on with what the waker's own record holds",
        file: "include/wakers.h",
        change: (
            "wake->hops[i] = before->hops[i - 1];",
            "wake->hops[i] = before->hops[i];",
        ),
        expected: Caught(&[AS_LONG]),
    },
    Mutant {
        rule: "a chain is as long as asked for",
        file: "include/wakers.h",
        change: (
            "!before || i >= chain_length ||",
            "!before || i > chain_length ||",
        ),
        expected: Caught(&[AS_LONG]),
    },
    Mutant {
        rule: "a chain has no more than its waker's hops and one",
        file: "include/wakers.h",
        change: ("i > before->hop_count", "i >= before->hop_count"),
        expected: Caught(&[AS_LONG]),
    },
    Mutant {
        rule: "a chain's hash is of every hop",
        file: "include/wakers.h",
        change: (
            "hash = hash_word(hash, wake->hops[i]);",
            "hash = hash_word(hash, wake->hops[0]);",
        ),
        expected: Caught(&["checks/clock::chains_that_differ_in_any_hop_are_two"]),
    },
    Mutant {
        rule: "a hop is process, thread and name as well as stacks",
        file: "include/waker_hops.h",
        change: ("i < sizeof(waker) / sizeof(u64)", "i < 4"),
        expected: Caught(&["timed::wakers::told_apart::wakers_with_the_same_stack_are_two"]),
    },
    Mutant {
        rule: "with --chain every thread has a clock",
        file: "include/clock/thread_record.h",
        change: (
            "measure_everything ? task->pid : is_chosen(task)",
            "is_chosen(task)",
        ),
        expected: Caught(&[AS_LONG]),
    },
    Mutant {
        rule: "those that are not chosen are not shown",
        file: "src/offwaketime.bpf.c",
        change: (
            "!state_is_wanted(thread->off_state) || !is_chosen(task))",
            "!state_is_wanted(thread->off_state))",
        ),
        expected: Caught(&[
            "timed::wakers::chain::nobody_comes_twice_in_a_chain",
            AS_LONG,
        ]),
    },
    Mutant {
        rule: "bounds are on the blocked time",
        file: "src/offwaketime.bpf.c",
        change: (
            "!length_is_wanted(blocked) ||",
            "!length_is_wanted(blocked + runnable) ||",
        ),
        expected: Caught(&["checks/clock::bounds_are_on_the_blocked_time"]),
    },
    Mutant {
        rule: "a thread that was preempted waits for no waker",
        file: "src/offwaketime.bpf.c",
        change: ("if (!blocked || ", "if ("),
        expected: Caught(&["timed::wakers::told_apart::who_is_preempted_waits_for_no_waker"]),
    },
    Mutant {
        rule: "preempted: the wait before is still its last",
        file: "src/offwaketime.bpf.c",
        change: (
            "	if (!state)
		return;
",
            "",
        ),
        expected: SameHere("it costs time only: its hops stay, and its waker is asked for no more"),
    },
    Mutant {
        rule: "a wait has no waker yet",
        file: "src/offwaketime.bpf.c",
        change: ("	thread->wake.waker = WAKER_MISSED;\n", ""),
        expected: SameHere(
            "each wake-up that is shown sets it, and a hidden one is not to be had at will",
        ),
    },
    Mutant {
        rule: "who is woken after the window is still blocked",
        file: "src/offwaketime.bpf.c",
        change: (
            "		thread->wake.waker = WAKER_STILL_BLOCKED;
",
            "",
        ),
        expected: Caught(&[
            "timed::wakers::told_apart::a_wait_that_ends_after_the_window_is_still_blocked",
        ]),
    },
    Mutant {
        rule: "--waker-pid takes the wake-ups of its processes",
        file: "include/wakers.h",
        change: (
            "if (filter_waker_pids && bpf_map_lookup_elem(&waker_pids, &pid))",
            "if (filter_waker_pids && (bpf_map_lookup_elem(&waker_pids, &pid) || pid))",
        ),
        expected: Caught(&[
            "together::printed::wakers::waker_pid_and_waker_tid_choose_whose_wake_ups_count",
        ]),
    },
    Mutant {
        rule: "a wait that was ended by nobody is nobody's",
        file: "src/offwaketime.bpf.c",
        change: (
            "	if (waker <= WAKER_UNWANTED && !any_waker_is_wanted())
		return;
",
            "",
        ),
        expected: Caught(&[
            "together::printed::wakers::waker_pid_and_waker_tid_choose_whose_wake_ups_count",
        ]),
    },
    Mutant {
        rule: "the waker's stack is its own",
        file: "include/waker_hops.h",
        change: (
            "		if (waker.pid)
			waker.user",
            "		if (!waker.pid)
			waker.user",
        ),
        expected: Caught(&[EACH_OTHERS]),
    },
];
