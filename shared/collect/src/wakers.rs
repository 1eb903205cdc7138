//! Who ended waits: the hops and chains that a program sends, each once.

use std::collections::{HashMap, HashSet};

use bpf::types::{
    COMM_LENGTH, Context, WAKER_STILL_BLOCKED, WAKER_UNWANTED, WakerChainEvent, WakerEvent,
};
use profile::{Stack, ThreadId, Waker, marker};

use crate::draft::Draft;
use crate::stacks::{Captured, NamedStack, Quality, Stacks};
use process::Interner;
use process::Living;
use process::Shares;
use waits::is_interrupt_entry;

/// Hops and chains kept at most; what comes after them counts as missing.
const MOST_KEPT: usize = 1 << 20;

/// Every waker seen so far, by ID.
pub(crate) struct Wakers {
    per_process: bool,
    /// Each belongs to a process.
    hops: Interner<Hop, u32>,
    /// Those of which a stack has not come yet.
    new: HashMap<u64, WakerEvent>,
    chains: HashMap<u64, Box<[u64]>>,
    /// Hops of each process.
    shares: Shares,
}

/// One who ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Hop {
    context: u32,
    /// 0 each unless processes are told apart.
    thread: ThreadId,
    comm: [u8; COMM_LENGTH],
    user: Captured,
    kernel: Captured,
}

/// A hop in a profile.
pub(crate) struct NamedWaker {
    pub(crate) waker: Waker,
    pub(crate) seen: Seen,
}

/// What was seen of one who ended a wait.
pub(crate) enum Seen {
    /// Where it was.
    At(NamedStack),
    /// Nothing, though there was one.
    Missed,
    /// That there was none.
    Nobody,
}

impl Wakers {
    pub(crate) fn new(per_process: bool) -> Wakers {
        Wakers {
            per_process,
            hops: Interner::new(),
            new: HashMap::new(),
            chains: HashMap::new(),
            shares: Shares::default(),
        }
    }

    /// Keeps a hop that a program sent.
    pub(crate) fn add(&mut self, event: WakerEvent) {
        let kept = self.hops.id_count() + self.new.len();
        if self.shares.may_take(event.pid, 1, kept, MOST_KEPT) {
            self.shares.take(event.pid, 1);
            self.new.insert(event.id, event);
        } else {
            self.shares.refuse();
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
                let lost = || is_lost(event.pid, id).then_some(Captured::Missed);
                stacks.captured(id).or_else(lost)
            });
            let (Some(user), Some(kernel)) = (user, kernel) else {
                return true;
            };
            let hop = Hop::new(event, user, kernel, *per_process);
            hops.insert(*id, hop, event.pid);
            false
        });
    }

    /// The IDs of the stacks of hops that could not settle yet.
    pub(crate) fn open_ids(&self) -> impl Iterator<Item = u64> {
        self.new
            .values()
            .flat_map(|event| [event.user, event.kernel])
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

    /// Whether a hop was not kept as there was no room, or its process had its share.
    pub(crate) fn has_refused(&self) -> bool {
        self.shares.has_refused()
    }

    /// Forgets the shares of processes that have ended.
    pub(crate) fn forget_ended(&mut self, living: &Living) {
        self.shares.forget_ended(living);
    }

    /// Forgets these IDs of hops that have another.
    pub(crate) fn forget(&mut self, ids: &HashSet<u64>) {
        self.hops.forget(ids);
    }

    /// The stacks of all hops.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = Captured> {
        self.hops.things().flat_map(|hop| [hop.user, hop.kernel])
    }

    /// Names the chain of wakers `id` that ends at a wait of `sleeper`, once the
    /// stacks are resolved. It ends before a thread that is in it already.
    pub(crate) fn named(
        &self,
        id: u64,
        sleeper: ThreadId,
        with_kernel: bool,
        stacks: &Stacks,
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
                // What had woken a bystander tells nothing.
                named.push(named_interrupt(hop, context, with_kernel, stacks, draft));
                break;
            }
            named.push(named_thread(hop, with_kernel, stacks, draft));
        }
        named
    }
}

impl Hop {
    fn new(event: &WakerEvent, user: Captured, kernel: Captured, per_process: bool) -> Hop {
        let (pid, tid) = match per_process {
            true => (event.pid, event.tid),
            false => (0, 0),
        };
        Hop {
            context: event.context,
            thread: ThreadId { pid, tid },
            comm: event.comm,
            user,
            kernel,
        }
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

fn named_thread(hop: &Hop, with_kernel: bool, stacks: &Stacks, draft: &mut Draft) -> NamedWaker {
    let kernel = match with_kernel {
        true => hop.kernel,
        false => Captured::Nothing,
    };
    let named = stacks.named(hop.user, kernel, draft);
    NamedWaker {
        waker: Waker {
            comm: draft.comm(&hop.comm),
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

/// The names of a stack's frames in the kernel, root first.
fn kernel_names(stack: Stack, draft: &Draft) -> Vec<&str> {
    let frames = draft.profile.frames_of(stack.kernel);
    frames.map(|frame| draft.profile.name(frame)).collect()
}

/// Whether a frame is of the expiry of timers: kernel/time/hrtimer.c, timer.c
/// and tick-common.c.
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

/// Where in a kernel stack, root first, the part begins that is the interrupt's and
/// not that of what it interrupted: the entry that is nearest to the leaf.
fn handler(names: &[&str]) -> usize {
    let is_entry = |name: &&str| is_interrupt_entry(name) || is_softirq_entry(name);
    names.iter().rposition(is_entry).unwrap_or(0)
}

/// kernel/softirq.c, before and since 6.10.
fn is_softirq_entry(name: &str) -> bool {
    matches!(name, "__do_softirq" | "handle_softirqs")
}

/// Whose work a kernel stack, root first, is, where the kernel does not tell.
fn context(names: &[&str]) -> Context {
    // kernel/entry/common.c: on its way back from an interrupt a CPU may do the
    // task's own work, such as handling a signal, or switch to another task.
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
#[allow(clippy::unwrap_used)]
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
        // Another interrupt's work, whatever came before it.
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

    #[test]
    fn hops_go_with_their_processes_unless_chains_refer_to_them() {
        let stacks = Stacks::new();
        let mut wakers = Wakers::new(false);
        for (id, pid) in [(10, std::process::id()), (11, u32::MAX)] {
            assert!(!wakers.has(id));
            wakers.add(WakerEvent {
                id,
                pid,
                ..WakerEvent::default()
            });
            wakers.settle(&stacks, |_, _| false);
        }
        let living = Living::read().unwrap();
        let unused: HashSet<u64> = wakers.unused(&living).collect();
        assert_eq!(unused, HashSet::from([11]));
        wakers.forget(&unused);
        assert_eq!([10, 11].map(|id| wakers.first(id)), [Some(10), None]);
        wakers.add(WakerEvent {
            id: 11,
            pid: u32::MAX,
            ..WakerEvent::default()
        });
        wakers.settle(&stacks, |_, _| false);
        wakers.add_chain(&WakerChainEvent {
            id: 20,
            ..WakerChainEvent::default()
        });
        assert_eq!(wakers.unused(&living).count(), 0);
    }
}
