//! Who ended waits: the hops and chains that a program sends, each once.

use std::collections::{HashMap, HashSet};

use bpf::types::{COMM_LENGTH, STACK_MISSED, STACK_NONE};
use bpf::wakers::{
    CONTEXT_INTERRUPT, CONTEXT_SOFTIRQ, CONTEXT_TASK, CONTEXT_UNKNOWN, WAKER_STILL_BLOCKED,
    WAKER_UNWANTED, WakerChainEvent, WakerEvent,
};
use profile::{Frame, ThreadId, Waker, marker};

use crate::comms::Comms;
use crate::living::Living;
use crate::once::Once;
use crate::stacks::{NamedStack, Quality, Stacks};

/// Hops and chains kept at most; what comes after them counts as missing.
const MOST_KEPT: usize = 1 << 20;

/// Every waker seen so far, by ID.
pub(crate) struct Wakers {
    per_process: bool,
    /// Each belongs to a process.
    hops: Once<Hop, u32>,
    /// Those of which a stack has not come yet.
    new: HashMap<u64, WakerEvent>,
    chains: HashMap<u64, Box<[u64]>>,
}

/// One who ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Hop {
    context: u32,
    /// 0 each unless processes are told apart.
    thread: ThreadId,
    comm: [u8; COMM_LENGTH],
    user: u64,
    kernel: u64,
}

/// A hop with the quality of its stack; `None` where it was not seen.
pub(crate) struct NamedWaker {
    pub(crate) waker: Waker,
    pub(crate) stack: Option<NamedStack>,
}

impl Wakers {
    pub(crate) fn new(per_process: bool) -> Wakers {
        Wakers {
            per_process,
            hops: Once::new(),
            new: HashMap::new(),
            chains: HashMap::new(),
        }
    }

    /// Keeps a hop that a program sent.
    pub(crate) fn add(&mut self, event: WakerEvent) {
        if self.hops.id_count() + self.new.len() < MOST_KEPT {
            self.new.insert(event.id, event);
        }
    }

    /// Keeps a chain that a program sent.
    pub(crate) fn add_chain(&mut self, event: &WakerChainEvent) {
        if self.chains.len() < MOST_KEPT {
            let hops = event.hops.iter().take(event.hop_count as usize);
            self.chains.insert(event.id, hops.copied().collect());
        }
    }

    /// Takes in the hops whose stacks have come. One that has not counts as
    /// missed if `is_lost` says so of the process and the ID.
    pub(crate) fn settle(&mut self, stacks: &Stacks, is_lost: impl Fn(u32, u64) -> bool) {
        let Wakers {
            per_process,
            hops,
            new,
            ..
        } = self;
        new.retain(|id, event| {
            let [user, kernel] = [event.user, event.kernel].map(|id| {
                let lost = || is_lost(event.pid, id).then_some(STACK_MISSED);
                stacks.first(id).or_else(lost)
            });
            event.user = user.unwrap_or(event.user);
            event.kernel = kernel.unwrap_or(event.kernel);
            let is_settled = user.is_some() && kernel.is_some();
            if is_settled {
                hops.insert(*id, Hop::new(event, *per_process), event.pid);
            }
            !is_settled
        });
    }

    /// The first ID of the same hop, once it has settled; chains and what
    /// stands for no hop have but one.
    pub(crate) fn first(&self, id: u64) -> Option<u64> {
        match id <= WAKER_UNWANTED || self.chains.contains_key(&id) {
            true => Some(id),
            false => self.hops.first(id),
        }
    }

    /// Whether what an ID stands for has come.
    pub(crate) fn has(&self, id: u64) -> bool {
        self.new.contains_key(&id) || self.first(id).is_some()
    }

    /// The IDs that nobody will use any more, unless a thread's record holds
    /// them: those of processes that have ended.
    pub(crate) fn unused(&self, living: &Living) -> impl Iterator<Item = u64> {
        // Chains refer to hops for good.
        let keeps_all = !self.chains.is_empty();
        self.hops
            .ownerless(move |pid| keeps_all || living.has(*pid))
    }

    /// Forgets these IDs of hops that have another.
    pub(crate) fn forget(&mut self, ids: &HashSet<u64>) {
        self.hops.forget(ids);
    }

    /// The stacks of all hops.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = u64> {
        self.hops.things().flat_map(|hop| [hop.user, hop.kernel])
    }

    /// Names the chain of wakers `id` that ends at a wait of `sleeper`, once the
    /// stacks are resolved. It ends before a thread that is in it already.
    pub(crate) fn named(
        &self,
        id: u64,
        sleeper: ThreadId,
        with_kernel: bool,
        stacks: &mut Stacks,
        comms: &mut Comms,
    ) -> Vec<NamedWaker> {
        if id == WAKER_STILL_BLOCKED {
            return vec![without_stack(marker::STILL_BLOCKED)];
        }
        let single = [id];
        let chain = self.chains.get(&id).map_or(&single[..], |chain| chain);
        let mut named = Vec::with_capacity(chain.len());
        let mut seen = vec![sleeper];
        for id in chain {
            let Some(hop) = self.hops.get(*id) else {
                named.push(without_stack(marker::MISSED_WAKER));
                break;
            };
            let thread = hop.thread;
            let context = match hop.context {
                CONTEXT_UNKNOWN => context(&stacks.named(STACK_NONE, hop.kernel).frames),
                known => known,
            };
            let is_thread = context == CONTEXT_TASK;
            if is_thread && thread.tid != 0 {
                if seen.contains(&thread) {
                    break;
                }
                seen.push(thread);
            }
            if !is_thread {
                // What had woken a bystander tells nothing.
                named.push(named_interrupt(hop, context, with_kernel, stacks));
                break;
            }
            named.push(named_thread(hop, with_kernel, stacks, comms));
        }
        named
    }
}

impl Hop {
    fn new(event: &WakerEvent, per_process: bool) -> Hop {
        let (pid, tid) = match per_process {
            true => (event.pid, event.tid),
            false => (0, 0),
        };
        Hop {
            context: event.context,
            thread: ThreadId { pid, tid },
            comm: event.comm,
            user: event.user,
            kernel: event.kernel,
        }
    }
}

fn without_stack(name: &str) -> NamedWaker {
    NamedWaker {
        waker: Waker {
            comm: name.into(),
            thread: None,
            frames: [].into(),
        },
        stack: None,
    }
}

fn named_thread(
    hop: &Hop,
    with_kernel: bool,
    stacks: &mut Stacks,
    comms: &mut Comms,
) -> NamedWaker {
    let kernel = if with_kernel { hop.kernel } else { STACK_NONE };
    let stack = stacks.named(hop.user, kernel);
    NamedWaker {
        waker: Waker {
            comm: comms.name(&hop.comm),
            thread: Some(hop.thread),
            frames: stack.frames.clone(),
        },
        stack: Some(stack),
    }
}

fn named_interrupt(hop: &Hop, context: u32, with_kernel: bool, stacks: &mut Stacks) -> NamedWaker {
    let mut stack = stacks.named(STACK_NONE, hop.kernel);
    let handler = handler(&stack.frames);
    let comm = if handler.iter().any(is_timer) {
        marker::TIMER
    } else if context == CONTEXT_INTERRUPT {
        marker::INTERRUPT
    } else {
        marker::SOFTIRQ
    };
    let waker = Waker {
        comm: comm.into(),
        thread: None,
        frames: if with_kernel { handler } else { &[] }.into(),
    };
    if !with_kernel {
        stack.quality = Quality::Whole;
    }
    NamedWaker {
        waker,
        stack: Some(stack),
    }
}

/// Whether a frame is of the expiry of timers: kernel/time/hrtimer.c, timer.c
/// and tick-common.c.
fn is_timer(frame: &Frame) -> bool {
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
    TIMERS.contains(&&*frame.name)
}

/// Of a kernel stack, root first, the part that is the interrupt's and not that
/// of what it interrupted: up to the entry that is nearest to the leaf.
fn handler(frames: &[Frame]) -> &[Frame] {
    let is_entry = |frame: &Frame| is_interrupt_entry(frame) || is_softirq_entry(frame);
    let entry = frames.iter().rposition(is_entry).unwrap_or(0);
    &frames[entry..]
}

/// arch/x86/include/asm/idtentry.h; what is no interrupt are exceptions.
fn is_interrupt_entry(frame: &Frame) -> bool {
    frame.name.starts_with("asm_sysvec_")
        || matches!(
            &*frame.name,
            "asm_common_interrupt" | "asm_spurious_interrupt" | "asm_exc_nmi"
        )
}

/// kernel/softirq.c, before and since 6.10.
fn is_softirq_entry(frame: &Frame) -> bool {
    matches!(&*frame.name, "__do_softirq" | "handle_softirqs")
}

/// Whose work a kernel stack, root first, is, where the kernel does not tell.
fn context(frames: &[Frame]) -> u32 {
    // kernel/entry/common.c: on its way back from an interrupt a CPU may do the
    // task's own work, such as handling a signal, or switch to another task.
    let returns = |frame: &Frame| {
        ["irqentry_exit", "exit_to_user_mode", "preempt_schedule_irq"]
            .iter()
            .any(|start| frame.name.starts_with(start))
    };
    for frame in frames.iter().rev() {
        if returns(frame) {
            return CONTEXT_TASK;
        }
        if is_softirq_entry(frame) {
            return CONTEXT_SOFTIRQ;
        }
        if is_interrupt_entry(frame) {
            return CONTEXT_INTERRUPT;
        }
    }
    CONTEXT_TASK
}

#[cfg(test)]
mod tests {
    use profile::FrameKind;

    use super::*;

    fn kernel(names: &[&str]) -> Vec<Frame> {
        let frame = |name: &&str| Frame {
            name: (*name).into(),
            module: None,
            kind: FrameKind::Kernel,
        };
        names.iter().map(frame).collect()
    }

    fn names(frames: &[Frame]) -> Vec<&str> {
        frames.iter().map(|frame| &*frame.name).collect()
    }

    #[test]
    fn what_was_interrupted_is_cut_off() {
        let nested = kernel(&[
            "do_syscall_64",
            "vfs_read",
            "asm_common_interrupt",
            "handle_softirqs",
            "net_rx_action",
            "asm_sysvec_apic_timer_interrupt",
            "hrtimer_interrupt",
            "try_to_wake_up",
        ]);
        assert_eq!(
            names(handler(&nested)),
            [
                "asm_sysvec_apic_timer_interrupt",
                "hrtimer_interrupt",
                "try_to_wake_up"
            ]
        );
        assert_eq!(
            names(handler(&nested[..5])),
            ["handle_softirqs", "net_rx_action"]
        );
        // Another interrupt's work, whatever came before it.
        let irq_work = [
            &nested[..],
            &kernel(&["asm_sysvec_irq_work", "irq_work_run"]),
        ]
        .concat();
        assert!(!handler(&irq_work).iter().any(is_timer));
        assert!(handler(&nested).iter().any(is_timer));
        let unknown = kernel(&["ret_from_fork", "kthread"]);
        assert_eq!(handler(&unknown).len(), 2);
        assert!(handler(&[]).is_empty());
    }

    #[test]
    fn the_stack_tells_whose_work_it_is() {
        let of = |names: &[&str]| context(&kernel(names));
        let entry = "asm_sysvec_apic_timer_interrupt";
        assert_eq!(of(&[]), CONTEXT_TASK);
        assert_eq!(of(&["do_syscall_64", "vfs_write"]), CONTEXT_TASK);
        assert_eq!(of(&["do_syscall_64", entry, "f"]), CONTEXT_INTERRUPT);
        assert_eq!(
            of(&[entry, "irq_exit_rcu", "__do_softirq", "f"]),
            CONTEXT_SOFTIRQ
        );
        assert_eq!(of(&["asm_exc_page_fault", "f"]), CONTEXT_TASK);
        let signal = [entry, "irqentry_exit_to_user_mode", "get_signal", "do_exit"];
        assert_eq!(of(&signal), CONTEXT_TASK);
        assert_eq!(
            of(&[&signal[..], &[entry, "f"]].concat()),
            CONTEXT_INTERRUPT
        );
    }

    #[test]
    fn a_cycle_ends_the_chain() {
        let mut wakers = Wakers::new(true);
        let mut stacks = Stacks::new();
        let mut comms = Comms::default();
        for (id, tid) in [(10, 1), (11, 2), (12, 3)] {
            wakers.add(WakerEvent {
                id,
                pid: 1,
                tid,
                ..WakerEvent::default()
            });
        }
        let mut chain = WakerChainEvent {
            id: 20,
            hop_count: 4,
            ..WakerChainEvent::default()
        };
        chain.hops[..4].copy_from_slice(&[10, 11, 10, 12]);
        wakers.add_chain(&chain);
        wakers.settle(&stacks, |_, _| false);
        let mut tids = |id, sleeper| -> Vec<u32> {
            let sleeper = ThreadId {
                pid: 1,
                tid: sleeper,
            };
            let named = wakers.named(id, sleeper, true, &mut stacks, &mut comms);
            let thread = |named: &NamedWaker| named.waker.thread.map_or(0, |thread| thread.tid);
            named.iter().map(thread).collect()
        };
        assert_eq!(tids(20, 9), [1, 2]);
        assert_eq!(tids(20, 2), [1]);
        assert_eq!(tids(12, 9), [3]);
        // Not seen: its place is marked.
        assert_eq!(tids(13, 9), [0]);
    }

    #[test]
    fn a_hop_of_processes_that_are_not_told_apart_is_kept_once() {
        let stacks = Stacks::new();
        let hop = |id, pid, user| WakerEvent {
            id,
            pid,
            user,
            ..WakerEvent::default()
        };
        for (per_process, expected) in [(false, Some(10)), (true, Some(11))] {
            let mut wakers = Wakers::new(per_process);
            for event in [hop(10, 1, STACK_MISSED), hop(11, 2, STACK_MISSED)] {
                wakers.add(event);
                wakers.settle(&stacks, |_, _| false);
            }
            assert_eq!(wakers.first(11), expected);
        }
    }

    #[test]
    fn a_hop_waits_for_its_stack_unless_that_is_lost() {
        let stacks = Stacks::new();
        let mut wakers = Wakers::new(false);
        wakers.add(WakerEvent {
            id: 10,
            pid: 1,
            user: 99,
            ..WakerEvent::default()
        });
        wakers.settle(&stacks, |_, _| false);
        assert_eq!((wakers.first(10), wakers.has(10)), (None, true));
        wakers.settle(&stacks, |pid, id| (pid, id) == (1, 99));
        assert_eq!(wakers.first(10), Some(10));
        assert_eq!(wakers.stacks().next(), Some(STACK_MISSED));
    }
}
