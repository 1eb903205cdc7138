//! Wakers of a profile: threads and interrupts that ended waits, with their stacks.

use bpf::types::{Context, WAKER_STILL_BLOCKED};
use profile::{Stack, ThreadId, Waker, marker};
use waits::is_interrupt_entry;

use super::draft::Draft;
use super::stacks::{NamedStack, Quality};
use crate::record::{Captured, Hop, RuntimeNames, Stacks, Wakers};

/// Waker in a chain, as the profile has it.
pub(crate) struct NamedWaker {
    pub(crate) waker: Waker,
    pub(crate) seen: Seen,
}

/// Visibility of a waker to programs.
pub(crate) enum Seen {
    /// A program saw the waker with this stack.
    At(NamedStack),
    /// No program saw the waker.
    Missed,
    /// The wait ended without a waker.
    Nobody,
}

impl Wakers {
    /// Returns the named chain of wakers with this ID, which ends at a wait of `sleeper`. The
    /// stacks must be resolved. Ends the chain before a thread that the chain already contains.
    pub(crate) fn named(
        &self,
        id: u64,
        sleeper: ThreadId,
        with_kernel: bool,
        (stacks, names): (&Stacks, &RuntimeNames),
        draft: &mut Draft,
    ) -> Vec<NamedWaker> {
        if id == WAKER_STILL_BLOCKED {
            return vec![unseen(marker::STILL_BLOCKED, Seen::Nobody, draft)];
        }
        let single = [id];
        let chain = self.chains.get(&id).map_or(&single[..], |chain| chain);
        let mut named = Vec::with_capacity(chain.len());
        let mut seen = vec![sleeper];
        for id in chain {
            let Some(hop) = self.hops.get(*id) else {
                named.push(unseen(marker::MISSED_WAKER, Seen::Missed, draft));
                break;
            };
            let thread = hop.thread;
            let context = match Context(hop.context) {
                Context::CONTEXT_UNKNOWN => {
                    let stack = stacks.named(Captured::Nothing, hop.kernel, draft).stack;
                    context(&kernel_names(stack, draft))
                }
                known => known,
            };
            let is_thread = context == Context::CONTEXT_TASK;
            if is_thread && thread.tid != 0 {
                if seen.contains(&thread) {
                    break;
                }
                seen.push(thread);
            }
            if !is_thread {
                // An interrupt is unrelated to the thread that it interrupted, so the chain ends
                // here.
                named.push(named_interrupt(hop, context, with_kernel, stacks, draft));
                break;
            }
            named.push(named_thread(hop, with_kernel, stacks, names, draft));
        }
        named
    }
}

fn unseen(name: &str, seen: Seen, draft: &mut Draft) -> NamedWaker {
    let waker = Waker {
        comm: draft.profile.names.text(name),
        thread: None,
        stack: Stack::default(),
    };
    NamedWaker { waker, seen }
}

fn named_thread(
    hop: &Hop,
    with_kernel: bool,
    stacks: &Stacks,
    names: &RuntimeNames,
    draft: &mut Draft,
) -> NamedWaker {
    let kernel = if with_kernel {
        hop.kernel
    } else {
        Captured::Nothing
    };
    let named = stacks.named(hop.user, kernel, draft);
    NamedWaker {
        waker: Waker {
            comm: draft.thread_name(names, &hop.name),
            thread: Some(hop.thread),
            stack: named.stack,
        },
        seen: Seen::At(named),
    }
}

fn named_interrupt(
    hop: &Hop,
    context: Context,
    with_kernel: bool,
    stacks: &Stacks,
    draft: &mut Draft,
) -> NamedWaker {
    let mut named = stacks.named(Captured::Nothing, hop.kernel, draft);
    let names = kernel_names(named.stack, draft);
    let handler = handler(&names);
    let comm = if names[handler..].iter().any(|name| is_timer(name)) {
        marker::TIMER
    } else if context == Context::CONTEXT_INTERRUPT {
        marker::INTERRUPT
    } else {
        marker::SOFTIRQ
    };
    let mut stack = Stack::default();
    if with_kernel {
        let tree = &mut draft.profile.stacks;
        let frames = tree.root_first(named.stack.kernel);
        stack.kernel = tree.add(frames.into_iter().skip(handler));
    } else {
        named.quality = Quality::Whole;
    }
    let waker = Waker {
        comm: draft.profile.names.text(comm),
        thread: None,
        stack,
    };
    NamedWaker {
        waker,
        seen: Seen::At(named),
    }
}

/// Returns the names of a stack's kernel frames, from root to leaf.
fn kernel_names(stack: Stack, draft: &Draft) -> Vec<&str> {
    let frames = draft.profile.frames_of(stack.kernel);
    frames.map(|frame| draft.profile.name(frame)).collect()
}

/// Returns whether a function handles the expiry of timers (kernel/time/hrtimer.c, timer.c,
/// tick-common.c).
fn is_timer(name: &str) -> bool {
    const TIMERS: [&str; 8] = [
        "hrtimer_interrupt",
        "hrtimer_run_queues",
        "hrtimer_run_softirq",
        "__hrtimer_run_queues",
        "run_timer_softirq",
        "__run_timers",
        "call_timer_fn",
        "tick_handle_periodic",
    ];
    TIMERS.contains(&name)
}

/// Returns the index at which the frames of the interrupt begin: the interrupt entry nearest to the
/// leaf. `names` are from root to leaf.
fn handler(names: &[&str]) -> usize {
    let is_entry = |name: &&str| is_interrupt_entry(name) || is_softirq_entry(name);
    names.iter().rposition(is_entry).unwrap_or(0)
}

/// Returns whether a function enters a softirq (kernel/softirq.c, before and since 6.10).
fn is_softirq_entry(name: &str) -> bool {
    matches!(name, "__do_softirq" | "handle_softirqs")
}

/// Returns the context of a waker from its kernel stack, for wakers whose context the program could
/// not find. `names` are from root to leaf.
fn context(names: &[&str]) -> Context {
    // When a CPU returns from an interrupt, it may run work of the task, such as handling a signal,
    // or switch to another task (kernel/entry/common.c).
    let returns = |name: &str| {
        ["irqentry_exit", "exit_to_user_mode", "preempt_schedule_irq"]
            .iter()
            .any(|start| name.starts_with(start))
    };
    for name in names.iter().rev() {
        if returns(name) {
            return Context::CONTEXT_TASK;
        }
        if is_softirq_entry(name) {
            return Context::CONTEXT_SOFTIRQ;
        }
        if is_interrupt_entry(name) {
            return Context::CONTEXT_INTERRUPT;
        }
    }
    Context::CONTEXT_TASK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_interrupted_is_cut_off() {
        let nested = [
            "do_syscall_64",
            "vfs_read",
            "asm_common_interrupt",
            "handle_softirqs",
            "net_rx_action",
            "asm_sysvec_apic_timer_interrupt",
            "hrtimer_interrupt",
            "try_to_wake_up",
        ];
        assert_eq!(handler(&nested), 5);
        assert_eq!(handler(&nested[..5]), 3);
        // The stack of a different interrupt follows the nested ones.
        let irq_work = [&nested[..], &["asm_sysvec_irq_work", "irq_work_run"]].concat();
        let is_timers = |names: &[&str]| names[handler(names)..].iter().any(|name| is_timer(name));
        assert!(!is_timers(&irq_work));
        assert!(is_timers(&nested));
        assert_eq!(handler(&["ret_from_fork", "kthread"]), 0);
        assert_eq!(handler(&[]), 0);
    }

    #[test]
    fn the_stack_tells_whose_work_it_is() {
        let of = context;
        let entry = "asm_sysvec_apic_timer_interrupt";
        assert_eq!(of(&[]), Context::CONTEXT_TASK);
        assert_eq!(of(&["do_syscall_64", "vfs_write"]), Context::CONTEXT_TASK);
        assert_eq!(
            of(&["do_syscall_64", entry, "f"]),
            Context::CONTEXT_INTERRUPT
        );
        assert_eq!(
            of(&[entry, "irq_exit_rcu", "__do_softirq", "f"]),
            Context::CONTEXT_SOFTIRQ
        );
        assert_eq!(of(&["asm_exc_page_fault", "f"]), Context::CONTEXT_TASK);
        let signal = [entry, "irqentry_exit_to_user_mode", "get_signal", "do_exit"];
        assert_eq!(of(&signal), Context::CONTEXT_TASK);
        assert_eq!(
            of(&[&signal[..], &[entry, "f"]].concat()),
            Context::CONTEXT_INTERRUPT
        );
    }
}
