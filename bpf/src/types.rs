//! The structs of `include/*.h` that cross the border, in Rust.
//!
//! Each has the layout of the C struct that it is named after; sizes are held
//! against the ones the BPF compiler recorded.

use plain::Plain;

use crate::offcputime::types as c;

/// Length of a thread's name in the kernel, the ending NUL included.
pub const COMM_LENGTH: usize = 16;

/// The most frames a captured stack has: `kernel.perf_event_max_stack`.
pub const STACK_DEPTH: usize = 127;

/// Stack ID: there is no stack, as with user frames of a kernel thread.
pub const STACK_NONE: u64 = 0;
/// Stack ID: there is a stack, and it could not be read.
pub const STACK_MISSED: u64 = 1;
/// Bit in a stack ID: user space reads this stack; the ID is a task's address.
pub const STACK_SEEDED: u64 = 1 << 63;

/// Kind of a message: [`StackEvent`].
pub const EVENT_STACK: u32 = 0;
/// Kind of a message: [`ThreadEnd`].
pub const EVENT_THREAD_END: u32 = 1;
/// Kind of a message without a body: the counts should be drained soon.
pub const EVENT_COUNTS_FILLING: u32 = 2;
/// Kind of a message: [`crate::unwind::StackCopy`].
pub const EVENT_STACK_COPY: u32 = 3;
/// Kind of a message: [`crate::unwind::CodeChanged`].
pub const EVENT_CODE_CHANGED: u32 = 4;

/// `struct stack_event`, without its frames, which follow: `depth` u64s.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct StackEvent {
    /// [`EVENT_STACK`].
    pub kind: u32,
    /// Number of frames.
    pub depth: u32,
    /// The stack's ID.
    pub hash: u64,
    /// Which program image of the process the addresses belong to.
    pub instance: u64,
    /// The process, or 0 for a kernel stack.
    pub pid: u32,
    /// Whether the leaf is a program counter (1) or a return address (0).
    pub leaf_is_exact: u32,
    /// How the walk ended: an `enum walk_end`, see [`crate::unwind`].
    pub walk_end: u32,
    unused: u32,
}

/// `struct stack_key`: what is counted.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StackKey {
    /// Process.
    pub pid: u32,
    /// Thread; 0 unless threads are told apart.
    pub tid: u32,
    /// ID of the user stack.
    pub user: u64,
    /// ID of the kernel stack.
    pub kernel: u64,
    /// Who ended the wait, an ID of `include/wakers.h`; 0 where nobody asks.
    pub waker: u64,
    /// The thread's name at the time.
    pub comm: [u8; COMM_LENGTH],
}

/// `struct tally`: how often, and for how long.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Intervals or samples.
    pub events: u64,
    /// Nanoseconds blocked.
    pub blocked: u64,
    /// Nanoseconds waiting for a CPU.
    pub runnable: u64,
    /// The longest interval in nanoseconds.
    pub longest: u64,
}

/// `struct losses`: what found no room in the kernel's buffers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Times that a stack's frames could not be sent.
    pub stack_frames: u64,
    /// Intervals or samples that were not counted.
    pub counts: u64,
    /// Scheduler events of threads that got no clock.
    pub clocks: u64,
    /// Context switches that the kernel did not show.
    pub switches: u64,
    /// Accounts of threads that ended.
    pub thread_ends: u64,
}

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

/// `TASK_WAKING` of the kernel's include/linux/sched.h: no longer asleep.
pub const TASK_WAKING: u32 = 0x200;

/// `struct thread`: a thread's clock.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Thread {
    /// State and since when; see [`Thread::state`] and [`Thread::since`].
    pub clock: u64,
    /// When it last left a CPU, CLOCK_MONOTONIC ns.
    pub off_since: u64,
    /// Nanoseconds it was blocked since then, once woken.
    pub off_blocked: u64,
    /// ID of the user stack with which it left.
    pub user: u64,
    /// Nanoseconds on a CPU, without the open interval; likewise the others.
    pub running: u64,
    /// Nanoseconds waiting for a CPU.
    pub runnable: u64,
    /// Nanoseconds waiting for anything else.
    pub blocked: u64,
    /// When its life in the window began, CLOCK_MONOTONIC ns.
    pub started: u64,
    /// Which program image its process runs; 0 for a kernel thread.
    pub instance: u64,
    /// How often it had left a CPU when its clock started.
    pub switches: u64,
    /// Nanoseconds that the scheduler had booked for it when it last got a CPU, or
    /// left one.
    pub ran_before: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// The kernel's task state with which it left; 0 if still runnable.
    pub off_state: u32,
    /// A waker came before it was asleep.
    pub woken_early: u32,
    /// Switches because it blocked.
    pub voluntary: u32,
    /// Switches because it was preempted or yielded.
    pub involuntary: u32,
    /// Its name when last looked at.
    pub comm: [u8; COMM_LENGTH],
}

impl Thread {
    /// The state of the open interval.
    pub fn state(&self) -> ThreadState {
        match self.clock & 3 {
            0 => ThreadState::Running,
            1 => ThreadState::Runnable,
            _ => ThreadState::Blocked,
        }
    }

    /// When the open interval began, CLOCK_MONOTONIC ns.
    pub fn since(&self) -> u64 {
        self.clock >> 2
    }
}

/// A thread's clock with what a program keeps beside it.
pub trait ClockRecord: Plain + Copy + Default {
    /// The clock.
    fn thread(&self) -> &Thread;
}

impl ClockRecord for Thread {
    fn thread(&self) -> &Thread {
        self
    }
}

/// `struct thread_end`: the account of a thread that ended.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadEnd {
    /// [`EVENT_THREAD_END`].
    pub kind: u32,
    padding: u32,
    /// When its clock stopped, CLOCK_MONOTONIC ns.
    pub ended: u64,
    /// Its account, with nothing open.
    pub thread: Thread,
}

/// `struct seeded_thread`: a thread that is there before the window.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SeededThread {
    /// The task's address, which is also the ID of its user stack.
    pub task: u64,
    /// How often it has left a CPU: when its clock started, if it did.
    pub switches: u64,
    /// Which program image its process runs.
    pub instance: u64,
    /// Process.
    pub pid: u32,
    /// Whether the leaf is a program counter (1) or a return address (0).
    pub leaf_is_exact: u32,
    /// Whether it is on a CPU (1), so that its stack cannot be read.
    pub is_running: u32,
    padding: u32,
    /// User registers; 0 in a kernel thread.
    pub registers: UserRegisters,
}

/// `struct user_registers`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct UserRegisters {
    /// Program counter.
    pub instruction_pointer: u64,
    /// The others by their DWARF numbers.
    pub general: [u64; 16],
}

/// `struct open_interval`: a thread that was off CPU when the window closed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenInterval {
    /// The task's address.
    pub task: u64,
    /// When its interval began, CLOCK_MONOTONIC ns.
    pub off_since: u64,
    /// ID of its kernel stack.
    pub kernel: u64,
    /// The kernel's task state.
    pub task_state: u32,
    padding: u32,
}

/// `struct thread_ids`: a thread as the kernel and as the caller names it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadIds {
    /// Process, in the initial PID namespace.
    pub pid: u32,
    /// Thread, in the initial PID namespace.
    pub tid: u32,
    /// Process, in the caller's PID namespace.
    pub namespace_pid: u32,
    /// Thread, in the caller's PID namespace.
    pub namespace_tid: u32,
    /// Which program image its process runs; 0 for a kernel thread.
    pub instance: u64,
}

// SAFETY: each is repr(C), made of integers only, and any bytes are a value.
unsafe impl Plain for StackEvent {}
// SAFETY: as above.
unsafe impl Plain for StackKey {}
// SAFETY: as above.
unsafe impl Plain for Tally {}
// SAFETY: as above.
unsafe impl Plain for Losses {}
// SAFETY: as above.
unsafe impl Plain for Thread {}
// SAFETY: as above.
unsafe impl Plain for ThreadEnd {}
// SAFETY: as above.
unsafe impl Plain for SeededThread {}
// SAFETY: as above.
unsafe impl Plain for OpenInterval {}
// SAFETY: as above.
unsafe impl Plain for ThreadIds {}

const _: () = {
    assert!(size_of::<StackKey>() == size_of::<c::stack_key>());
    assert!(size_of::<Tally>() == size_of::<c::tally>());
    assert!(size_of::<Losses>() == size_of::<c::losses>());
    assert!(size_of::<Thread>() == size_of::<c::thread>());
    assert!(size_of::<StackEvent>() + 8 * STACK_DEPTH == size_of::<c::stack_event>());
};
