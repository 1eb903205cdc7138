//! The thread clock and its window: `thread_record.h`, `thread_clock.h`, `clock_events.h`,
//! `clock_edges.h`, `window.h`, `task.h`.

use crate::mutant::Expected::{Caught, SameHere};
use crate::mutant::Mutant;

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        rule: "a waker that comes before the sleeper left ends a wait that never was",
        file: "include/clock/thread_clock.h",
        change: (
            "state == THREAD_BLOCKED && thread->woken_early",
            "state == THREAD_BLOCKED && false",
        ),
        expected: Caught(&["timed::wakers::early::naps_that_never_were_are_not_blocked_time"]),
    },
    Mutant {
        rule: "an early waker leaves a note",
        file: "include/clock/clock_events.h",
        change: ("thread->woken_early = 1;", "thread->woken_early = 0;"),
        expected: Caught(&["timed::wakers::early::naps_that_never_were_are_not_blocked_time"]),
    },
    Mutant {
        rule: "the record of a thread on a CPU is that CPU's to write",
        file: "include/clock/clock_events.h",
        change: (
            "	if (task->on_cpu) {
		thread->woken_early = 1;
		set_to_work_early(task, thread);
		return 0;
	}
",
            "",
        ),
        expected: Caught(&["timed::wakers::early::naps_that_never_were_are_not_blocked_time"]),
    },
    Mutant {
        rule: "an early waker's note is about one wait",
        file: "include/clock/thread_clock.h",
        change: ("	thread->woken_early = 0;\n", ""),
        expected: SameHere("it is asked only where no wake-up was seen"),
    },
    Mutant {
        rule: "woken is runnable",
        file: "include/clock/clock_events.h",
        change: (
            "thread->clock = clock_at(now, THREAD_RUNNABLE);",
            "thread->clock = clock_at(now, THREAD_BLOCKED);",
        ),
        expected: Caught(&["timed::waiting_intervals::blocked_and_runnable_are_all_of_it"]),
    },
    Mutant {
        rule: "preempted is runnable",
        file: "include/clock/thread_clock.h",
        change: (
            "clock_at(now, blocked ? THREAD_BLOCKED : THREAD_RUNNABLE)",
            "clock_at(now, THREAD_BLOCKED)",
        ),
        expected: Caught(&["timed::clock::runnable::more_busy_threads_than_cpus_wait_as_runnable"]),
    },
    Mutant {
        rule: "preempted on its way to sleep is preempted",
        file: "include/clock/thread_clock.h",
        change: (
            "bool voluntary = !preempt && state;",
            "bool voluntary = state;",
        ),
        expected: SameHere("an interrupt would have to come between two instructions"),
    },
    Mutant {
        rule: "with a signal pending the kernel does not let it sleep",
        file: "include/clock/thread_clock.h",
        change: (
            "blocked = voluntary && task_state(task);",
            "blocked = voluntary;",
        ),
        expected: SameHere(
            "since 6.14 the kernel reports the state after it has looked for signals",
        ),
    },
    Mutant {
        rule: "on a CPU is running",
        file: "include/clock/thread_clock.h",
        change: (
            "thread->clock = clock_at(now, THREAD_RUNNING);",
            "thread->clock = clock_at(now, THREAD_RUNNABLE);",
        ),
        expected: Caught(&["timed::clock::runnable::more_busy_threads_than_cpus_wait_as_runnable"]),
    },
    Mutant {
        rule: "born is runnable",
        file: "include/clock/clock_events.h",
        change: (
            "new_thread(task, now, THREAD_RUNNABLE, DRAFT",
            "new_thread(task, now, THREAD_BLOCKED, DRAFT",
        ),
        expected: Caught(&["timed::clock::thread_states::a_newborn_waits_for_a_cpu"]),
    },
    Mutant {
        rule: "who runs when the window opens is running",
        file: "include/clock/clock_edges.h",
        change: ("if (!task->on_cpu)", "if (true)"),
        expected: Caught(&[
            "timed::clock::thread_states::one_that_never_leaves_its_cpu_is_running",
        ]),
    },
    Mutant {
        rule: "who sleeps when the window opens is blocked",
        file: "include/clock/clock_edges.h",
        change: (
            "task_state(task) & ~TASK_WAKING ? THREAD_BLOCKED :",
            "task_state(task) & ~TASK_WAKING ? THREAD_RUNNABLE :",
        ),
        expected: Caught(&[
            "timed::clock::sleepers::a_thread_asleep_throughout_has_the_whole_window",
        ]),
    },
    Mutant {
        rule: "who is being woken when the window opens is runnable",
        file: "include/clock/clock_edges.h",
        change: ("task_state(task) & ~TASK_WAKING", "task_state(task)"),
        expected: SameHere("the iterator would have to come between two steps of a wake-up"),
    },
    Mutant {
        rule: "one that died while it was seeded has no record",
        file: "include/clock/clock_edges.h",
        change: (
            "if (thread && (task_state(task) & TASK_DEAD))",
            "if (thread && false)",
        ),
        expected: SameHere("a thread would have to die between two lines of the iterator"),
    },
    Mutant {
        rule: "time is never made up: without a record, a clock starts now",
        file: "include/clock/thread_record.h",
        change: (
            "moved < now || preexisting_are_known || lost.clocks",
            "moved < now",
        ),
        expected: Caught(&[
            "checks/clock::who_was_not_there_when_the_window_opened_is_measured_from_now_on",
        ]),
    },
    Mutant {
        rule: "who leaves for the last time has its account sent and its record deleted",
        file: "include/clock/thread_clock.h",
        change: (
            "if (voluntary && (state & TASK_DEAD)) {",
            "if (voluntary && false) {",
        ),
        expected: Caught(&[
            "timed::clock::sleepers::a_thread_that_ends_in_the_window_is_there_until_its_end",
        ]),
    },
    Mutant {
        rule: "a thread that ends may have lost its ID",
        file: "include/clock/clock_events.h",
        change: (
            "(!preempt && (state & TASK_DEAD) && !ended_elsewhere(prev));",
            "false;",
        ),
        expected: SameHere(
            "a thread would have to exec between its leader's last words and its last switch, some microseconds",
        ),
    },
    Mutant {
        rule: "voluntary switches are those because it blocked",
        file: "include/clock/thread_clock.h",
        change: ("		if (voluntary)\n", "		if (!voluntary)\n"),
        expected: Caught(&[
            "timed::clock::accounting::every_thread_adds_up_and_agrees_with_the_kernel",
        ]),
    },
    Mutant {
        rule: "exec by another thread than the leader: the record follows the task",
        file: "include/clock/clock_events.h",
        change: ("thread->tid = namespace_tid(task);", ";"),
        expected: Caught(&["timed::clock::thread_states::who_becomes_the_leader_keeps_its_clock"]),
    },
    Mutant {
        rule: "after exec addresses are another program's",
        file: "include/clock/clock_events.h",
        change: ("		set_ids(task, thread);\n", ""),
        expected: Caught(&[
            "timed::stacks::changes::a_program_executed_later_is_known_from_its_first_wait_on",
        ]),
    },
    Mutant {
        rule: "exec ends the record that the filter no longer takes in",
        file: "include/clock/clock_events.h",
        change: ("		leave(task, thread, now);\n", ""),
        expected: Caught(&[
            "timed::clock::thread_states::who_becomes_the_leader_is_measured_no_longer",
        ]),
    },
    Mutant {
        rule: "exec begins the record that the filter only now takes in",
        file: "include/clock/clock_events.h",
        change: (
            "new_thread(task, moved_by(task, now), THREAD_RUNNING,",
            "new_thread(task, window_start, THREAD_RUNNING,",
        ),
        expected: Caught(&[
            "timed::clock::thread_states::who_becomes_the_leader_is_measured_from_then_on",
        ]),
    },
    Mutant {
        rule: "an event never ends an interval before it began",
        file: "include/clock/thread_clock.h",
        change: (
            "	if (now < since)
		now = since;
	if (state == THREAD_RUNNING)",
            "	if (state == THREAD_RUNNING)",
        ),
        expected: Caught(&["checks/clock::an_event_never_ends_an_interval_before_it_began"]),
    },
    Mutant {
        rule: "nothing counts before the window",
        file: "include/window.h",
        change: ("if (!start || now < start)", "if (!start || !now)"),
        expected: Caught(&["timed::clock::thread_states::the_window_is_all_that_counts"]),
    },
    Mutant {
        rule: "after the window the clock stands still",
        file: "include/window.h",
        change: (
            "return stop && now > stop ? stop : now;",
            "return stop && !now ? stop : now;",
        ),
        expected: Caught(&["timed::clock::thread_states::the_window_is_all_that_counts"]),
    },
    Mutant {
        rule: "switches after the window are not counted",
        file: "include/clock/thread_clock.h",
        change: (
            "	if (!window_is_over(now)) {\n		if (voluntary)",
            "	if (true) {\n		if (voluntary)",
        ),
        expected: Caught(&["timed::clock::thread_states::the_window_is_all_that_counts"]),
    },
    Mutant {
        rule: "of a hidden switch-out the scheduler knows when it was",
        file: "include/clock/thread_clock.h",
        change: (
            "return now > since && ran < now - since ? since + ran : now;",
            "return now > since && ran > now - since ? since + ran : now;",
        ),
        expected: Caught(&["collect/hidden_switches::a_departure_is_found_by_the_time_run"]),
    },
    Mutant {
        rule: "of a hidden switch-in the scheduler knows when it was",
        file: "include/clock/thread_clock.h",
        change: (
            "now > since + ran ? now - ran : since",
            "now > since + ran ? now : since",
        ),
        expected: Caught(&["checks/clock::a_hidden_arrival_was_when_the_thread_got_its_cpu"]),
    },
    Mutant {
        rule: "a hidden switch costs the interval's user stack",
        file: "include/clock/thread_clock.h",
        change: (
            "thread->user = is_kernel_thread(task) ? STACK_NONE : STACK_MISSED;",
            "(void)task;",
        ),
        expected: Caught(&["collect/hidden_switches::a_departure_is_found_by_the_time_run"]),
    },
    Mutant {
        rule: "a hidden switch-out is a lost event",
        file: "include/clock/thread_clock.h",
        change: (
            "	now = unseen_departure(task, thread, now);
	if (!window_is_over(now))",
            "	now = unseen_departure(task, thread, now);
	if (!now)",
        ),
        expected: Caught(&["collect/hidden_switches::a_departure_is_found_by_the_time_run"]),
    },
    Mutant {
        rule: "a hidden switch-in is a lost event",
        file: "include/clock/thread_clock.h",
        change: (
            "	if (!window_is_over(now))
		__sync_fetch_and_add(&lost.switches, 1);
	arrive(",
            "	arrive(",
        ),
        expected: Caught(&["collect/hidden_switches::an_arrival_is_found_by_the_time_run"]),
    },
    Mutant {
        rule: "the window's end finds those that left unseen",
        file: "include/stacks/stack_edges.h",
        change: (
            "if (*(volatile u64 *)&thread->clock == clock)",
            "if (*(volatile u64 *)&thread->clock != clock)",
        ),
        expected: SameHere("a switch hidden just before the window's end: not to be had at will"),
    },
    Mutant {
        rule: "IDs are those of the caller's PID namespace",
        file: "include/task.h",
        change: (
            "if (BPF_CORE_READ(upid.ns, ns.inum) == pid_namespace)",
            "if (upid.nr)",
        ),
        expected: Caught(&["together::namespaces::ids_are_printed_as_the_caller_knows_them"]),
    },
    Mutant {
        rule: "-u takes user threads, -k the kernel's",
        file: "include/clock/thread_record.h",
        change: (
            "is_kernel_thread(task) == (thread_kind == KERNEL_THREADS)",
            "is_kernel_thread(task) != (thread_kind == KERNEL_THREADS)",
        ),
        expected: Caught(&["together::targets::user_threads_and_kernel_threads"]),
    },
];
