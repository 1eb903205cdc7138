//! Intervals below -m, sampled: `short_intervals.h`, `offcputime.bpf.c`.

use crate::mutant::Expected::Caught;
use crate::mutant::Mutant;

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        rule: "the point that chooses an interval is drawn anew in each period",
        file: "include/clock/short_intervals.h",
        change: (
            "		time->point = random_point(period);
		if (time->point <= time->passed)",
            "		if (time->point <= time->passed)",
        ),
        expected: Caught(&["checks/short_intervals::waits_in_step_have_their_shares"]),
    },
    Mutant {
        rule: "a thread's first point may be anywhere in its first period",
        file: "include/clock/short_intervals.h",
        change: (
            "	if (!time->point)
		time->point = random_point(period);",
            "	if (!time->point)
		time->point = 1;",
        ),
        expected: Caught(&["checks/short_intervals::short_lives_have_their_share"]),
    },
    Mutant {
        rule: "an interval that begins a period may have the point of that, too",
        file: "include/clock/short_intervals.h",
        change: (
            "		if (time->point <= time->passed)
			weight += period;
",
            "",
        ),
        expected: Caught(&[
            "checks/short_intervals::waits_in_step_have_their_shares",
            "checks/short_intervals::a_wait_of_almost_a_period_may_stand_for_two",
        ]),
    },
    Mutant {
        rule: "an interval is chosen if the point is in it",
        file: "include/clock/short_intervals.h",
        change: ("time->passed < time->point && ", ""),
        expected: Caught(&["checks/short_intervals::waits_in_step_have_their_shares"]),
    },
    Mutant {
        rule: "each state has periods of its own",
        file: "src/offcputime.bpf.c",
        change: (
            "pass_short_time(&thread->short_runnable",
            "pass_short_time(&thread->short_blocked",
        ),
        expected: Caught(&["checks/short_intervals::waits_in_step_have_their_shares"]),
    },
    Mutant {
        rule: "from -m on intervals count as long as they are",
        file: "src/offcputime.bpf.c",
        change: ("sample_short && length < min_interval", "sample_short"),
        expected: Caught(&[
            "checks/short_intervals::from_the_period_on_all_count_as_long_as_they_are",
        ]),
    },
    Mutant {
        rule: "what begins in a state that is not asked for is not sampled",
        file: "src/offcputime.bpf.c",
        change: (
            "	if (!state_is_wanted(thread->off_state))
		return;
	if (sample_short",
            "	if (sample_short",
        ),
        expected: Caught(&["checks/short_intervals::what_is_not_asked_for_is_not_sampled"]),
    },
    Mutant {
        rule: "intervals that were sampled are told from others",
        file: "include/clock/intervals.h",
        change: ("		.period = period,\n", ""),
        expected: Caught(&["checks/short_intervals::waits_in_step_have_their_shares"]),
    },
];
