//! The global variables that every program has, whichever skeleton it is in.

use std::ptr;

use crate::types::Losses;

/// Constants of every program, set between opening and loading it.
pub trait FilterConfig {
    /// Inode number of the caller's PID namespace; 0 for the initial one.
    fn set_pid_namespace(&mut self, inode: u32);
    /// Whether `target_pids` and `target_tids` choose what is measured.
    fn set_filters(&mut self, pids: bool, tids: bool);
    /// When the targets were named, CLOCK_MONOTONIC: younger ones are others.
    fn set_targets_named(&mut self, ns: u64);
    /// The only target, as the kernel names it.
    fn set_only_pid(&mut self, pid: u32);
}

/// Constants of a program that captures stacks.
pub trait SharedConfig: FilterConfig {
    /// Which stacks to capture.
    fn set_stacks(&mut self, user: bool, kernel: bool);
    /// Whether threads are counted apart.
    fn set_per_thread(&mut self, per_thread: bool);
    /// How user stacks are walked: `CALL_GRAPH_` of [`crate::unwind`].
    fn set_call_graph(&mut self, mode: u32);
    /// Whether every user stack is sent as a copy beside its walk, for checks.
    fn set_copy_every_stack(&mut self, copy: bool);
}

/// Variables of every running program, in memory that both sides map.
pub trait WindowState {
    /// Begins the window at `ns` on CLOCK_MONOTONIC.
    fn set_window_start(&mut self, ns: u64);
    /// Ends the window at `ns` on CLOCK_MONOTONIC.
    fn set_window_stop(&mut self, ns: u64);
    /// What was lost so far.
    fn losses(&self) -> Losses;
}

/// Variables of a running program that captures stacks.
pub trait SharedState: WindowState {
    /// How many keys are in the current counts map.
    fn counts_used(&self) -> u64;
    /// Has programs count into `counts_odd`, or else `counts_even`: one that is
    /// empty.
    fn count_into(&mut self, odd: bool);
    /// Lets this many stacks be sent as copies from now on.
    fn allow_copies(&mut self, copies: i64);
}

macro_rules! implement_window {
    ($skeleton:ident) => {
        impl FilterConfig for crate::$skeleton::types::rodata {
            fn set_pid_namespace(&mut self, inode: u32) {
                self.pid_namespace = inode;
            }

            fn set_filters(&mut self, pids: bool, tids: bool) {
                self.filter_pids = pids;
                self.filter_tids = tids;
            }

            fn set_targets_named(&mut self, ns: u64) {
                self.targets_named_ns = ns;
            }

            fn set_only_pid(&mut self, pid: u32) {
                self.only_pid = pid;
            }
        }

        impl WindowState for crate::$skeleton::types::bss {
            fn set_window_start(&mut self, ns: u64) {
                // SAFETY: a valid, aligned field; volatile as the kernel reads it.
                unsafe { ptr::write_volatile(&mut self.window_start, ns) }
            }

            fn set_window_stop(&mut self, ns: u64) {
                // SAFETY: as above.
                unsafe { ptr::write_volatile(&mut self.window_stop, ns) }
            }

            fn losses(&self) -> Losses {
                // SAFETY: a valid, aligned field; volatile as the kernel writes it.
                let lost = unsafe { ptr::read_volatile(&self.lost) };
                Losses {
                    stack_frames: lost.stack_frames,
                    counts: lost.counts,
                    clocks: lost.clocks,
                    switches: lost.switches,
                    thread_ends: lost.thread_ends,
                }
            }
        }
    };
}

macro_rules! implement_shared {
    ($skeleton:ident) => {
        implement_window!($skeleton);

        impl SharedConfig for crate::$skeleton::types::rodata {
            fn set_stacks(&mut self, user: bool, kernel: bool) {
                self.want_user_stacks = user;
                self.want_kernel_stacks = kernel;
            }

            fn set_per_thread(&mut self, per_thread: bool) {
                self.per_thread = per_thread;
            }

            fn set_call_graph(&mut self, mode: u32) {
                self.call_graph = mode;
            }

            fn set_copy_every_stack(&mut self, copy: bool) {
                self.copy_every_stack = copy;
            }
        }

        impl SharedState for crate::$skeleton::types::bss {
            fn counts_used(&self) -> u64 {
                // SAFETY: a valid, aligned field; volatile as the kernel writes it.
                unsafe { ptr::read_volatile(&self.counts_used) }
            }

            fn count_into(&mut self, odd: bool) {
                // Keys that yet go into the full map then have the other drained early.
                // SAFETY: as above.
                unsafe { ptr::write_volatile(&mut self.counts_used, 0) }
                // SAFETY: as above.
                unsafe { ptr::write_volatile(&mut self.drain_asked, 0) }
                // SAFETY: as above.
                unsafe { ptr::write_volatile(&mut self.counts_are_odd, odd.into()) }
            }

            fn allow_copies(&mut self, copies: i64) {
                // SAFETY: as above.
                unsafe { ptr::write_volatile(&mut self.copies_allowed, copies) }
            }
        }
    };
}

/// Variables of a program that keeps the thread clock.
pub trait ClockState: WindowState {
    /// Says that every thread has a clock that was there at the window's start.
    fn set_threads_are_seeded(&mut self);
}

macro_rules! implement_clock {
    ($skeleton:ident) => {
        impl ClockState for crate::$skeleton::types::bss {
            fn set_threads_are_seeded(&mut self) {
                // SAFETY: a valid, aligned field; volatile as the kernel reads it.
                unsafe { ptr::write_volatile(&mut self.threads_are_seeded, true) }
            }
        }
    };
}

/// Constants of a program that measures intervals off the CPU.
pub trait IntervalConfig {
    /// The order of `sched_switch`'s arguments, `enum switch_arguments`.
    fn set_switch_arguments(&mut self, order: u32);
    /// Which threads are chosen: `ALL_THREADS` and so on in `thread_clock.h`.
    fn set_thread_kind(&mut self, kind: u32);
    /// Bounds on an interval's length, both inclusive, nanoseconds.
    fn set_lengths(&mut self, least: u64, most: u64);
    /// `state_filter` and `state_mask` of `intervals.h`.
    fn set_states(&mut self, filter: u32, mask: u32);
}

macro_rules! implement_intervals {
    ($skeleton:ident) => {
        impl IntervalConfig for crate::$skeleton::types::rodata {
            fn set_switch_arguments(&mut self, order: u32) {
                self.switch_arguments = order;
            }

            fn set_thread_kind(&mut self, kind: u32) {
                self.thread_kind = kind;
            }

            fn set_lengths(&mut self, least: u64, most: u64) {
                self.min_interval = least;
                self.max_interval = most;
            }

            fn set_states(&mut self, filter: u32, mask: u32) {
                self.state_filter = filter;
                self.state_mask = mask;
            }
        }
    };
}

implement_window!(cpudist);
implement_clock!(cpudist);
implement_shared!(offcputime);
implement_clock!(offcputime);
implement_intervals!(offcputime);
implement_shared!(offwaketime);
implement_clock!(offwaketime);
implement_intervals!(offwaketime);
implement_shared!(oncputime);
