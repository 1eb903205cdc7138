//! Types shared by programs and user space. libbpf-cargo generates them from the objects' BTF:
//! structs and enums of `include/*.h`, which document each field.
//!
//! The build compares their sizes and offsets with those in BTF.

use std::hash::{Hash, Hasher};

use plain::Plain;

pub use crate::cpudist::types::{
    recent_sum as RecentSum, span_counts as SpanCounts, span_key as SpanKey, span_kind as SpanKind,
    span_limits as SpanLimits, span_owner as SpanOwner, span_sum as SpanSum, waiting as Waiting,
};
/// Record of a thread, and the account of a thread that ended.
pub use crate::cpudist::types::{thread as Thread, thread_end as ThreadEnd};
pub use crate::event_loops::types::{
    epoll_wait_entry as EpollWaitEntry, epoll_wait_event as EpollWaitEvent,
};
pub use crate::offwaketime::types::{
    awaited_level as AwaitedLevel, awaited_name as AwaitedName, call_graph as CallGraph,
    cgroup_place as CgroupPlace, chain_end as ChainEnd, chain_link as ChainLink,
    closed_interval as ClosedInterval, code_changed as CodeChanged, context as Context,
    departure as Departure, dump_budget as DumpBudget, dump_limits as DumpLimits,
    event_kind as EventKind, function_piece as FunctionPiece,
    interpreted_function as InterpretedFunction, lane_event as LaneEvent, lane_part as LanePart,
    language_layout as LanguageLayout, language_runtime as LanguageRuntime, losses as Losses,
    mixed_stack as MixedStack, name_event as NameEvent, no_stack as NoStack, no_waker as NoWaker,
    object_event as ObjectEvent, object_kind as ObjectKind,
    preexisting_thread as PreexistingThread, process_event as ProcessEvent,
    program_name as AwaitedProgramName, replaced_return as ReplacedReturn, returning as Returning,
    sample_event as SampleEvent, socket_side as SocketSide, stack_dump as StackDump,
    stack_event as StackEvent, stack_key as StackKey, stack_limits as StackLimits,
    stack_owner as StackOwner, state_filter as StateFilter, switch_arguments as SwitchArguments,
    tally as Tally, thread_ids as ThreadIds, thread_kind as ThreadKind,
    timeline_kind as TimelineKind, unwind_mapping as UnwindMapping, unwind_page as UnwindPage,
    unwind_process as UnwindProcess, unwind_rows as UnwindRows, user_registers as UserRegisters,
    wait_end as WaitEnd, waker_chain_event as WakerChainEvent, waker_event as WakerEvent,
    walk_end as WalkEnd,
};

/// All types of the programs, among them the layouts of the languages.
pub use crate::offwaketime::types as headers;

/// Returns the number of elements of an array in a struct.
const fn length<Struct, Element, const N: usize>(_: fn(&Struct) -> &[Element; N]) -> usize {
    N
}

/// Length of a thread's name in the kernel, with the final NUL.
pub const COMM_LENGTH: usize = length(|key: &StackKey| &key.comm);
/// Maximum frames of a captured stack.
pub const STACK_DEPTH: usize = length(|event: &StackEvent| &event.frames);
/// Maximum frames of a captured kernel stack.
pub const KERNEL_STACK_DEPTH: usize = StackLimits::KERNEL_STACK_DEPTH.0 as usize;
/// Maximum frames of a runtime in a captured stack, anchors included.
pub const CHAIN_DEPTH: usize = length(|stack: &MixedStack| &stack.links);
/// Place of the language in the operation on a futex.
pub const LOCK_LANGUAGE_SHIFT: u32 = shared::LOCK_LANGUAGE_SHIFT as u32;
/// Value of a link's instruction if the link is an anchor and no frame.
pub const CHAIN_ANCHOR: i32 = shared::CHAIN_ANCHOR as i32;
/// Value of a link's instruction if the link is an anchor of several native frames.
pub const CHAIN_SPAN: i32 = shared::CHAIN_SPAN as i32;
/// Value of a link's instruction if the link has the upper bits of addresses in machine code.
pub const CHAIN_COMPILED: i32 = shared::CHAIN_COMPILED as i32;
/// Value of a link's instruction if the link has the address of an interrupted instruction.
pub const CHAIN_INTERRUPTED: i32 = shared::CHAIN_INTERRUPTED as i32;
/// Value of a link's instruction if the link has the code of a function that may begin.
pub const CHAIN_BEGINS: i32 = shared::CHAIN_BEGINS as i32;
/// Size of a runtime's layout, in bytes.
pub const LANGUAGE_LAYOUT_BYTES: usize = size_of::<LanguageLayout>();
/// Maximum runtimes of one process.
pub const PROCESS_RUNTIMES: usize = length(|process: &UnwindProcess| &process.runtimes);
/// Maximum length of the stack in a dump, in bytes.
pub const STACK_DUMP_BYTES: usize = length(|dump: &StackDump| &dump.stack);
/// Rows in a shard of unwind tables.
pub const SHARD_ROWS: usize = length(|shard: &UnwindRows| &shard.rows);
/// Maximum length of the name of an awaited cgroup, with the final NUL.
pub const CGROUP_NAME_LENGTH: usize = length(|place: &CgroupPlace| &place.name);
/// Maximum hops of a chain of wakers.
pub const MAX_HOPS: usize = length(|chain: &WakerChainEvent| &chain.hops);
/// Bits that square_of() of `include/counts.h` drops from a length in ns.
pub const SQUARE_SHIFT: u32 = shared::SQUARE_SHIFT as u32;
/// Maximum length that square_of() squares, after it drops bits.
pub const LONGEST_SQUARED: u64 = shared::LONGEST_SQUARED;
/// Number of periods whose spans programs count at once.
pub const SPAN_SLOTS: usize = SpanLimits::SPAN_SLOTS.0 as usize;

/// Stack ID: there is no stack, as for the user stack of a kernel thread.
pub const STACK_NONE: u64 = NoStack::STACK_NONE.0 as u64;
/// Stack ID: there is a stack, but no program could read it.
pub const STACK_MISSED: u64 = NoStack::STACK_MISSED.0 as u64;
/// Stack ID in a thread's record: a program captures the stack once the thread is back.
pub const STACK_AT_RETURN: u64 = NoStack::STACK_AT_RETURN.0 as u64;
/// Bit that is set in the ID of a stack that user space must read, and in no other.
pub const STACK_TO_READ: u64 = shared::STACK_OF_PREEXISTING;
/// Object ID: the resource is unknown.
pub const NO_OBJECT: u64 = shared::NO_OBJECT;
/// Waker ID: the programs did not see the wake-up.
pub const WAKER_MISSED: u64 = NoWaker::WAKER_MISSED.0 as u64;
/// Waker ID: the window ended first.
pub const WAKER_STILL_BLOCKED: u64 = NoWaker::WAKER_STILL_BLOCKED.0 as u64;
/// Waker ID: the command line does not ask for this waker.
pub const WAKER_UNWANTED: u64 = NoWaker::WAKER_UNWANTED.0 as u64;

/// Maximum levels between a thread's cgroup and a target cgroup.
pub const MAX_CGROUP_LEVELS: usize = (shared::CGROUP_LEVELS * shared::CGROUP_CLIMBS) as usize;

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
    /// Returns the state of the open interval.
    pub fn state(&self) -> ThreadState {
        const MASK: u64 = (1 << shared::CLOCK_STATE_BITS) - 1;
        match self.clock & MASK {
            0 => ThreadState::Running,
            1 => ThreadState::Runnable,
            _ => ThreadState::Blocked,
        }
    }

    /// Returns the start of the open interval, in ns of CLOCK_MONOTONIC.
    pub fn since(&self) -> u64 {
        self.clock >> shared::CLOCK_STATE_BITS
    }
}

impl Thread {
    /// Sets the state of the open interval, and its start in ns of CLOCK_MONOTONIC.
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
    /// Makes a process with `count` mappings from index `first` on.
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

/// Implements equality and hashes by bytes, for structs of integers without padding.
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
    EpollWaitEntry,
    EpollWaitEvent,
    FunctionPiece,
    InterpretedFunction,
    LaneEvent,
    LanePart,
    LanguageLayout,
    LanguageRuntime,
    Losses,
    MixedStack,
    NameEvent,
    ObjectEvent,
    RecentSum,
    PreexistingThread,
    ProcessEvent,
    AwaitedProgramName,
    Returning,
    SampleEvent,
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
    // User space reads the records of all programs as a `Thread`.
    assert!(std::mem::offset_of!(crate::offwaketime::types::stack_thread, thread) == 0);
    assert!(std::mem::offset_of!(crate::offwaketime::types::sleeper, record) == 0);
    assert!(std::mem::offset_of!(crate::offcputime::types::waiting_thread, record) == 0);
    assert!(crate::offwaketime::types::thread_state::THREAD_RUNNING.0 == 0);
    assert!(crate::offwaketime::types::thread_state::THREAD_RUNNABLE.0 == 1);
    assert!(crate::offwaketime::types::thread_state::THREAD_BLOCKED.0 == 2);
};
