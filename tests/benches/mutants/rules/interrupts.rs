//! Whose work a CPU is doing: `context.h`.

use crate::mutant::Expected::Caught;
use crate::mutant::Mutant;

const BYSTANDERS: &str = "timed::wakers::each_other::a_timer_is_none_of_those_whom_it_interrupts";

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        rule: "an interrupt is not the task that it interrupts",
        file: "include/context.h",
        change: (
            "#define HARDIRQ_AND_NMI_MASK 0xff0000",
            "#define HARDIRQ_AND_NMI_MASK 0xf00000",
        ),
        expected: Caught(&[BYSTANDERS]),
    },
    Mutant {
        rule: "in an interrupt neither task nor user stack are taken",
        file: "include/context.h",
        change: (
            "context == CONTEXT_TASK || context == CONTEXT_UNKNOWN",
            "context != CONTEXT_UNKNOWN",
        ),
        expected: Caught(&["timed::wakers::each_other::what_interrupts_a_thread_is_not_its_doing"]),
    },
    Mutant {
        rule: "nor in a softirq",
        file: "include/context.h",
        change: (
            "count & SERVING_SOFTIRQ ? CONTEXT_SOFTIRQ : CONTEXT_TASK",
            "count & SERVING_SOFTIRQ ? CONTEXT_TASK : CONTEXT_TASK",
        ),
        expected: Caught(&["timed::wakers::told_apart::a_softirq_is_no_thread"]),
    },
    Mutant {
        rule: "an interrupt's kind is read off its kernel stack, also with -U",
        file: "include/waker_hops.h",
        change: (
            "if (want_kernel_stacks || context != CONTEXT_TASK)",
            "if (want_kernel_stacks)",
        ),
        expected: Caught(&["timed::wakers::told_apart::a_timer_is_one_without_kernel_stacks_too"]),
    },
];
