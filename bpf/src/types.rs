//! What programs and user space share, as libbpf-cargo makes it of the objects' BTF:
//! structs and enums of `include/*.h`, which say what each field means.
//!
//! The build holds sizes and offsets against what the compiler of the objects says.

use std::hash::{Hash, Hasher};

use plain::Plain;

pub use crate::cpudist::types::{
    recent_sum as RecentSum, span_counts as SpanCounts, span_key as SpanKey, span_kind as SpanKind,
    span_limits as SpanLimits, span_owner as SpanOwner, span_sum as SpanSum, waiting as Waiting,
};
/// A thread's clock, and the account of one that ended: other objects have more at the end.
pub use crate::cpudist::types::{thread as Thread, thread_end as ThreadEnd};
/// A thread's clock with its wakers.
pub use crate::offwaketime::types::thread as SleepingThread;
pub use crate::offwaketime::types::{
    awaited_level as AwaitedLevel, awaited_name as AwaitedName, call_graph as CallGraph,
    cgroup_place as CgroupPlace, chain_end as ChainEnd, chain_link as ChainLink,
    code_changed as CodeChanged, context as Context, departure as Departure,
    dump_budget as DumpBudget, dump_limits as DumpLimits, event_kind as EventKind,
    function_piece as FunctionPiece, interpreted_function as InterpretedFunction,
    language_layout as LanguageLayout, language_runtime as LanguageRuntime, losses as Losses,
    mixed_stack as MixedStack, no_stack as NoStack, no_waker as NoWaker,
    object_event as ObjectEvent, object_kind as ObjectKind, open_interval as OpenInterval,
    preexisting_thread as PreexistingThread, process_event as ProcessEvent,
    program_name as ProgramName, replaced_return as ReplacedReturn, returning as Returning,
    socket_side as SocketSide, stack_dump as StackDump, stack_event as StackEvent,
    stack_key as StackKey, stack_limits as StackLimits, stack_owner as StackOwner,
    state_filter as StateFilter, switch_arguments as SwitchArguments, tally as Tally,
    thread_ids as ThreadIds, thread_kind as ThreadKind, unwind_mapping as UnwindMapping,
    unwind_page as UnwindPage, unwind_process as UnwindProcess, unwind_rows as UnwindRows,
    user_registers as UserRegisters, wait_end as WaitEnd, waker_chain_event as WakerChainEvent,
    waker_event as WakerEvent, walk_end as WalkEnd,
};

/// All types that the programs have in common, for the languages' own.
pub use crate::offwaketime::types as headers;

/// How many elements an array in a struct has.
const fn length<Struct, Element, const N: usize>(_: fn(&Struct) -> &[Element; N]) -> usize {
    N
}

/// Length of a thread's name in the kernel, the ending NUL included.
pub const COMM_LENGTH: usize = length(|key: &StackKey| &key.comm);
/// The most frames a captured stack has.
pub const STACK_DEPTH: usize = length(|event: &StackEvent| &event.frames);
/// The most frames a captured kernel stack has.
pub const KERNEL_STACK_DEPTH: usize = StackLimits::KERNEL_STACK_DEPTH.0 as usize;
/// The most frames of a language's runtime that a captured stack has, with its anchors.
pub const CHAIN_DEPTH: usize = length(|stack: &MixedStack| &stack.links);
/// Position of a link that is no frame but an anchor.
pub const CHAIN_ANCHOR: i32 = shared::CHAIN_ANCHOR as i32;
/// Bytes of a layout of a language's runtime, at most.
pub const LANGUAGE_LAYOUT_BYTES: usize = size_of::<LanguageLayout>();
/// Runtimes of one process that programs look at.
pub const PROCESS_RUNTIMES: usize = length(|process: &UnwindProcess| &process.runtimes);
/// The most of a stack that a dump has, in bytes.
pub const STACK_DUMP_BYTES: usize = length(|dump: &StackDump| &dump.stack);
/// Rows in a shard of unwind tables.
pub const SHARD_ROWS: usize = length(|shard: &UnwindRows| &shard.rows);
/// Length of the name of a cgroup that is waited for, the ending NUL included.
pub const CGROUP_NAME_LENGTH: usize = length(|place: &CgroupPlace| &place.name);
/// The longest chain of wakers.
pub const MOST_HOPS: usize = length(|chain: &WakerChainEvent| &chain.hops);
/// How many intervals of spans are counted apart in the kernel.
pub const SPAN_SLOTS: usize = SpanLimits::SPAN_SLOTS.0 as usize;

/// Stack ID: there is no stack, as with user frames of a kernel thread.
pub const STACK_NONE: u64 = NoStack::STACK_NONE.0 as u64;
/// Stack ID: there is a stack, and it could not be read.
pub const STACK_MISSED: u64 = NoStack::STACK_MISSED.0 as u64;
/// In a thread's record: its stack is taken once it is back.
pub const STACK_AT_RETURN: u64 = NoStack::STACK_AT_RETURN.0 as u64;
/// Set in the ID of a stack that user space is to read, and in no other.
pub const STACK_TO_READ: u64 = shared::STACK_OF_PREEXISTING;
/// Object ID: what it was is not known.
pub const NO_OBJECT: u64 = shared::NO_OBJECT;
/// Waker ID: the wake-up was not seen.
pub const WAKER_MISSED: u64 = NoWaker::WAKER_MISSED.0 as u64;
/// Waker ID: the window ended first.
pub const WAKER_STILL_BLOCKED: u64 = NoWaker::WAKER_STILL_BLOCKED.0 as u64;
/// Waker ID: one that was not asked for.
pub const WAKER_UNWANTED: u64 = NoWaker::WAKER_UNWANTED.0 as u64;

/// The square of a length in nanoseconds, as `square_of()` of `include/counts.h` has it: in
/// units of 2^20 ns², and no more than that of two minutes.
pub fn square_of(length: u64) -> u64 {
    (length >> shared::SQUARE_SHIFT)
        .min(shared::LONGEST_SQUARED)
        .pow(2)
}

/// `__TASK_STOPPED` of the kernel's include/linux/sched.h: by a signal.
pub const TASK_STOPPED: u32 = shared::TASK_STOPPED as u32;
/// `TASK_FROZEN` of the kernel's include/linux/sched.h, since 6.1.
pub const TASK_FROZEN: u32 = shared::TASK_FROZEN as u32;
/// `TASK_WAKING` of the kernel's include/linux/sched.h: no longer asleep.
pub const TASK_WAKING: u32 = shared::TASK_WAKING as u32;

/// The most levels of cgroups between a thread's cgroup and one that is a target.
pub const MOST_CGROUP_LEVELS: usize = (shared::CGROUP_LEVELS * shared::CGROUP_CLIMBS) as usize;

/// A thread's state on its clock, `enum thread_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// On a CPU.
    Running,
    /// Waiting for a CPU.
    Runnable,
    /// Waiting for anything else.
    Blocked,
}

impl Thread {
    /// The state of the open interval.
    pub fn state(&self) -> ThreadState {
        const MASK: u64 = (1 << shared::CLOCK_STATE_BITS) - 1;
        match self.clock & MASK {
            0 => ThreadState::Running,
            1 => ThreadState::Runnable,
            _ => ThreadState::Blocked,
        }
    }

    /// When the open interval began, CLOCK_MONOTONIC ns.
    pub fn since(&self) -> u64 {
        self.clock >> shared::CLOCK_STATE_BITS
    }
}

impl Thread {
    /// Sets the state, and when it began, CLOCK_MONOTONIC ns.
    pub fn set_clock(&mut self, since: u64, state: ThreadState) {
        self.clock = since << shared::CLOCK_STATE_BITS | state as u64;
    }
}

/// Constants of the headers.
mod shared {
    include!(concat!(env!("OUT_DIR"), "/constants.rs"));
}

impl Hash for WaitEnd {
    fn hash<State: Hasher>(&self, state: &mut State) {
        self.0.hash(state);
    }
}

impl Hash for SocketSide {
    fn hash<State: Hasher>(&self, state: &mut State) {
        self.0.hash(state);
    }
}

/// A thread's clock with what a program keeps beside it.
pub trait ClockRecord: Plain + Copy + Default {
    /// The clock.
    fn thread(&self) -> Thread;
}

impl ClockRecord for Thread {
    fn thread(&self) -> Thread {
        *self
    }
}

impl ClockRecord for SleepingThread {
    fn thread(&self) -> Thread {
        let mut thread = Thread::default();
        // SAFETY: integers only, without padding.
        let bytes = unsafe { plain::as_bytes(self) };
        // It begins with the members of the other.
        let _ = plain::copy_from_bytes(&mut thread, bytes);
        thread
    }
}

impl UnwindProcess {
    /// `count` mappings from index `first` on.
    pub fn new(instance: u64, first: u32, count: u32, generation: u64) -> UnwindProcess {
        UnwindProcess {
            instance,
            mappings: u64::from(count) << 32 | u64::from(first),
            code_pages: 0,
            generation,
            ..UnwindProcess::default()
        }
    }
}

/// Structs that are integers alone, without padding: equal if their bytes are.
macro_rules! integers {
    ($($name:ident),* $(,)?) => {
        $(
            // SAFETY: repr(C), made of integers only, and any bytes are a value.
            unsafe impl Plain for $name {}

            impl PartialEq for $name {
                fn eq(&self, other: &Self) -> bool {
                    // SAFETY: no padding.
                    unsafe { plain::as_bytes(self) == plain::as_bytes(other) }
                }
            }

            impl Eq for $name {}

            impl Hash for $name {
                fn hash<H: Hasher>(&self, hasher: &mut H) {
                    // SAFETY: no padding.
                    unsafe { plain::as_bytes(self) }.hash(hasher);
                }
            }
        )*
    };
}

integers!(
    CgroupPlace,
    ChainLink,
    CodeChanged,
    Departure,
    DumpBudget,
    FunctionPiece,
    InterpretedFunction,
    LanguageLayout,
    LanguageRuntime,
    Losses,
    MixedStack,
    ObjectEvent,
    OpenInterval,
    RecentSum,
    PreexistingThread,
    ProcessEvent,
    ProgramName,
    Returning,
    SleepingThread,
    SpanCounts,
    SpanKey,
    SpanSum,
    StackDump,
    StackEvent,
    StackKey,
    Tally,
    Thread,
    ThreadEnd,
    ThreadIds,
    UnwindMapping,
    UnwindPage,
    UnwindProcess,
    UserRegisters,
    Waiting,
    WakerChainEvent,
    WakerEvent,
);

const _: () = {
    assert!(std::mem::offset_of!(SleepingThread, wake) == size_of::<Thread>());
    const SAMPLED: usize = std::mem::offset_of!(crate::offcputime::types::thread, short_blocked);
    assert!(SAMPLED == size_of::<Thread>());
    assert!(crate::offwaketime::types::thread_state::THREAD_RUNNING.0 == 0);
    assert!(crate::offwaketime::types::thread_state::THREAD_RUNNABLE.0 == 1);
    assert!(crate::offwaketime::types::thread_state::THREAD_BLOCKED.0 == 2);
};
