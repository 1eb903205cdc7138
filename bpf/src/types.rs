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
/// A thread's clock, and the account of one that ended.
pub use crate::cpudist::types::{thread as Thread, thread_end as ThreadEnd};
pub use crate::offwaketime::types::{
    awaited_level as AwaitedLevel, awaited_name as AwaitedName, call_graph as CallGraph,
    cgroup_place as CgroupPlace, chain_end as ChainEnd, chain_link as ChainLink,
    closed_interval as ClosedInterval, code_changed as CodeChanged, context as Context,
    departure as Departure, dump_budget as DumpBudget, dump_limits as DumpLimits,
    event_kind as EventKind, function_piece as FunctionPiece,
    interpreted_function as InterpretedFunction, language_layout as LanguageLayout,
    language_runtime as LanguageRuntime, losses as Losses, mixed_stack as MixedStack,
    no_stack as NoStack, no_waker as NoWaker, object_event as ObjectEvent,
    object_kind as ObjectKind, preexisting_thread as PreexistingThread,
    process_event as ProcessEvent, program_name as AwaitedProgramName,
    replaced_return as ReplacedReturn, returning as Returning, socket_side as SocketSide,
    stack_dump as StackDump, stack_event as StackEvent, stack_key as StackKey,
    stack_limits as StackLimits, stack_owner as StackOwner, state_filter as StateFilter,
    switch_arguments as SwitchArguments, tally as Tally, thread_ids as ThreadIds,
    thread_kind as ThreadKind, unwind_mapping as UnwindMapping, unwind_page as UnwindPage,
    unwind_process as UnwindProcess, unwind_rows as UnwindRows, user_registers as UserRegisters,
    wait_end as WaitEnd, waker_chain_event as WakerChainEvent, waker_event as WakerEvent,
    walk_end as WalkEnd,
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
    ClosedInterval,
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
    RecentSum,
    PreexistingThread,
    ProcessEvent,
    AwaitedProgramName,
    Returning,
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
    // User space reads records of all programs as a thread's clock.
    assert!(std::mem::offset_of!(crate::offwaketime::types::stack_thread, thread) == 0);
    assert!(std::mem::offset_of!(crate::offwaketime::types::sleeper, record) == 0);
    assert!(std::mem::offset_of!(crate::offcputime::types::waiting_thread, record) == 0);
    assert!(crate::offwaketime::types::thread_state::THREAD_RUNNING.0 == 0);
    assert!(crate::offwaketime::types::thread_state::THREAD_RUNNABLE.0 == 1);
    assert!(crate::offwaketime::types::thread_state::THREAD_BLOCKED.0 == 2);
};
