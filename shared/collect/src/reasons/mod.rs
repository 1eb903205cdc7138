//! Why a thread was blocked: worked out here and nowhere else, once for each stack, from
//! the functions that it waited in.

mod idleness;
mod kernel_functions;
mod user_functions;

use std::collections::{BTreeMap, HashMap};

use bpf::types::{SocketSide, WaitEnd};
use profile::{Idleness, Name, Profile, Reason, Stack, StackId, ThreadId, Why};
use symbolize::Frame;

use crate::objects::{Futex, Object, Objects, PYTHON_RUNTIME};
use crate::stacks::Captured;

use idleness::{Evidence, Site, Who};
use kernel_functions::{DIRECT, FAULT, FUTEX, RECLAIM, SWAP, Says, WRITES, is_scheduler};

/// What nothing is known of.
const UNKNOWN: (Reason, &str) = (Reason::Unknown, "unknown");
/// What there was no room to tell apart.
const OTHER: &str = "other";
/// The lock that Python's threads take turns by.
const GIL: (Reason, &str) = (Reason::Lock, "GIL");
/// What a thread that could run waits for where no CPU would help.
const QUOTA: (Reason, &str) = (Reason::Throttle, "CPU quota");
/// A futex of which user functions say nothing.
const FUTEX_OF_NO_KIND: (Reason, &str) = (Reason::Unknown, "futex");

/// The reasons of the stacks of a profile.
#[derive(Default)]
pub(crate) struct Reasons {
    of_kernel: HashMap<Captured, Option<Seen>>,
    /// The names of the threads that there were.
    threads: HashMap<ThreadId, String>,
    /// Whether they had work.
    evidence: Evidence,
    /// How often each function was where a thread slept that no row says anything of.
    unmatched: BTreeMap<String, u64>,
}

/// Where threads were blocked.
pub(crate) struct Place<'a> {
    pub(crate) stack: Stack,
    /// What its part of the stack was made of.
    pub(crate) kernel: Captured,
    /// What they waited on, by ID.
    pub(crate) object: u64,
    pub(crate) objects: &'a Objects,
    /// Who they are.
    pub(crate) thread: ThreadId,
    pub(crate) comm: Name,
    /// How their waits ended.
    pub(crate) end: WaitEnd,
}

impl Reasons {
    pub(crate) fn new(threads: impl Iterator<Item = (ThreadId, String)>) -> Reasons {
        Reasons {
            threads: threads.collect(),
            ..Reasons::default()
        }
    }

    /// Why a thread was blocked at a place, in so many intervals; `None` where no stack of
    /// the kernel was asked for. `sleep` tells what the kernel stack's leaf called.
    pub(crate) fn why(
        &mut self,
        profile: &mut Profile,
        place: &Place<'_>,
        sleep: impl FnOnce() -> Option<Frame>,
        events: u64,
    ) -> Option<Why> {
        let stack = place.stack;
        if stack.kernel.is_empty() {
            return None;
        }
        let seen = *self.of_kernel.entry(place.kernel).or_insert_with(|| {
            let sleep = sleep().map(|frame| frame.name);
            let mut functions: Vec<&str> = sleep.as_deref().into_iter().collect();
            functions.extend(names(profile, stack.kernel));
            of_kernel(functions.into_iter())
        });
        if seen.is_none() {
            let sleeper = names(profile, stack.kernel).find(|name| !is_scheduler(name));
            let sleeper = sleeper.unwrap_or_default().to_owned();
            *self.unmatched.entry(sleeper).or_default() += events;
        }
        let object = place.objects.get(place.object);
        let futex = match object {
            Some(Object::Futex(futex)) => Some(futex),
            _ => None,
        };
        let lived = |thread| self.threads.contains_key(&thread);
        let says = |futex| place.objects.places().says(futex, lived);
        let by_arguments = || futex.and_then(says);
        let (mut reason, mut detail) = reason(seen, names(profile, stack.user), by_arguments);
        // Stripped interpreters have no function that says so.
        if (is_of_call(reason) || (reason, detail) == FUTEX_OF_NO_KIND)
            && futex.is_some_and(|futex| place.objects.places().is_gil(futex))
        {
            (reason, detail) = GIL;
        }
        let side = match object {
            Some(Object::Socket { side, .. }) if is_of_call(reason) => *side,
            _ => SocketSide::SIDE_UNKNOWN,
        };
        let told = idleness::told((reason, detail), side, place.end);
        let object = object.and_then(|object| match object {
            Object::Pipe(name) => is_of_call(reason).then(|| name.to_string()),
            // A call may be given another file besides the pipe that it waits for, and a
            // descriptor may be another file's by now.
            Object::Called(name) | Object::Socket { name, .. } => {
                (is_of_call(reason) && !is_of_pipe(detail)).then(|| name.to_string())
            }
            Object::Mapped(name) => (reason == Reason::PageFault).then(|| name.to_string()),
            Object::Child(name) => (reason == Reason::Child).then(|| name.to_string()),
            Object::Other => Some(OTHER.to_owned()),
            Object::Futex(futex) if reason == Reason::Child => {
                self.threads.get(&futex.joined()).cloned()
            }
            Object::Futex(futex) => told_futex(profile, stack, futex, place.objects, reason),
        });
        let is_gil = (reason, detail) == GIL;
        let detail = profile.names.text(detail);
        let who = Who {
            thread: Some(place.thread),
            comm: place.comm,
        };
        let site = Site {
            reason,
            detail,
            user: stack.user,
        };
        self.evidence.add(who, site, told, place.end, events);
        Some(Why {
            reason,
            detail,
            object: object.map(|object| profile.names.text(&object)),
            holder: (futex.filter(|_| reason == Reason::Lock))
                .and_then(|futex| futex.holder(is_gil))
                .map(|holder| profile.names.text(holder)),
            ended_by: None,
            idleness: told.unwrap_or_default(),
        })
    }

    /// Decides whether threads had work where single waits do not tell. To be called once
    /// all samples are there.
    pub(crate) fn judge_idleness(&self, profile: &mut Profile) {
        self.evidence.judge(profile);
    }

    /// What is to be said of stacks whose reason is not known.
    pub(crate) fn note(&self) -> Option<String> {
        const MOST: usize = 20;
        let all = self.unmatched.iter().take(MOST);
        let all: Vec<String> = all
            .map(|(function, events)| format!("{function} ({events})"))
            .collect();
        let rest = self.unmatched.len().saturating_sub(MOST);
        (!all.is_empty()).then(|| {
            let rest = match rest {
                0 => String::new(),
                rest => format!(" and {rest} more"),
            };
            format!("no reason is known of waits in {}{rest}", all.join(", "))
        })
    }
}

/// Why a thread that could run did not, where that is not for want of a CPU. `end` is what a
/// program says of the interval.
pub(crate) fn of_delay(profile: &mut Profile, end: WaitEnd) -> Option<Why> {
    let (reason, detail) = QUOTA;
    (end == WaitEnd::WAIT_END_QUOTA).then(|| Why {
        reason,
        detail: profile.names.text(detail),
        object: None,
        holder: None,
        ended_by: None,
        idleness: Idleness::Waiting,
    })
}

/// Whether a wait is for what the system call is about, and not for what came in its way: a
/// lock of the kernel's, or memory.
fn is_of_call(reason: Reason) -> bool {
    !matches!(
        reason,
        Reason::KernelLock
            | Reason::PageFault
            | Reason::Memory
            | Reason::Stopped
            | Reason::Kernel
            | Reason::Unknown
    )
}

/// Whether what a wait was in particular is said by the functions of pipes alone.
fn is_of_pipe(detail: &str) -> bool {
    detail.starts_with("pipe, ")
}

/// What a futex is called: the variable that it is in, or who waits there.
fn told_futex(
    profile: &Profile,
    stack: Stack,
    futex: &Futex,
    objects: &Objects,
    reason: Reason,
) -> Option<String> {
    let variable = || objects.places().variable(futex, reason);
    match reason {
        // It is several words, none of which is a lock by itself.
        Reason::Lock if objects.places().is_gil(futex) => Some(PYTHON_RUNTIME.to_owned()),
        Reason::Lock | Reason::Condition => variable().or_else(|| {
            let user = user_functions::user(names(profile, stack.user))?;
            Some(format!("in {user}"))
        }),
        Reason::Unknown => variable(),
        _ => None,
    }
}

/// The functions of a part of a stack, leaf first.
fn names(profile: &Profile, part: StackId) -> impl Iterator<Item = &str> {
    let frames = profile.stacks.leaf_first(part);
    frames.map(|frame| profile.name(&profile.frames[frame]))
}

/// The reason, and what it was in particular.
fn reason<'a>(
    seen: Option<Seen>,
    user: impl Iterator<Item = &'a str>,
    by_arguments: impl FnOnce() -> Option<(Reason, &'static str)>,
) -> (Reason, &'static str) {
    match seen {
        Some(Seen::Reason(reason, detail)) => (reason, detail),
        Some(Seen::Futex) => user_functions::says(user)
            .or_else(by_arguments)
            .unwrap_or(FUTEX_OF_NO_KIND),
        None => UNKNOWN,
    }
}

/// What the kernel's functions tell.
#[derive(Clone, Copy)]
enum Seen {
    Reason(Reason, &'static str),
    /// Which user space knows the purpose of.
    Futex,
}

/// What these functions tell, leaf first.
fn of_kernel<'a>(functions: impl Iterator<Item = &'a str>) -> Option<Seen> {
    let (mut said, mut primitive) = (None, None);
    let (mut is_fault, mut is_swap, mut is_reclaim, mut is_futex) = (false, false, false, false);
    let (mut writes, mut sleeps) = (false, true);
    for function in functions {
        // What compilers make of one: `do_poll.constprop.0`.
        let function = function.split('.').next().unwrap_or(function);
        if is_scheduler(function) {
            continue;
        }
        let says = kernel_functions::says(function);
        match says {
            Some(Says::For(reason, detail)) => said = said.or(Some((reason, detail))),
            Some(Says::IfItSleeps(reason, detail)) if sleeps => {
                said = said.or(Some((reason, detail)));
            }
            Some(Says::Primitive(_, WRITES)) => writes = true,
            Some(Says::Primitive(reason, detail)) => {
                primitive = primitive.or(Some((reason, detail)));
            }
            Some(Says::IfItSleeps(..)) | None => {}
        }
        sleeps &= matches!(says, Some(Says::Primitive(Reason::Kernel, _)));
        is_fault |= FAULT.contains(&function);
        is_swap |= SWAP.contains(&function);
        is_reclaim |= RECLAIM.contains(&function);
        is_futex |= FUTEX.contains(&function);
    }
    let seen = match said.or(primitive) {
        Some((Reason::DiskRead, DIRECT)) if writes => (Reason::DiskWrite, DIRECT),
        Some(seen) => seen,
        None if is_reclaim => UNKNOWN,
        None => return is_futex.then_some(Seen::Futex),
    };
    // For whose sake: a lock that is waited for on the way stays one.
    let (reason, detail) = match seen.0 {
        Reason::KernelLock => seen,
        _ if is_reclaim => (Reason::Memory, "reclaim"),
        Reason::DiskRead if is_fault && is_swap => (Reason::PageFault, "swap"),
        Reason::DiskRead if is_fault => (Reason::PageFault, "file"),
        _ => seen,
    };
    Some(Seen::Reason(reason, detail))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::array;

    use bpf::types::{ObjectEvent, ObjectKind};
    use profile::{Frame as ProfileFrame, FrameKind, Unit};
    use symbolize::Symbolizer;

    use super::*;

    const THREAD: ThreadId = ThreadId { pid: 7, tid: 8 };

    /// What a program tells of an object of a process that has ended.
    fn object(kind: ObjectKind, name: &str) -> ObjectEvent {
        ObjectEvent {
            id: 100,
            object: kind.0,
            pid: 7,
            instance: 1,
            fd: u32::MAX,
            name_length: name.len() as u32,
            name: array::from_fn(|at| name.as_bytes().get(at).copied().unwrap_or(0)),
            ..ObjectEvent::default()
        }
    }

    fn file(mode: u32, name: &str) -> ObjectEvent {
        ObjectEvent {
            mode,
            inode: 5,
            ..object(ObjectKind::OBJECT_FILE, name)
        }
    }

    fn futex(value: u32) -> ObjectEvent {
        ObjectEvent {
            address: 0x1000,
            value,
            ..object(ObjectKind::OBJECT_FUTEX, "")
        }
    }

    /// Why a thread was blocked in these functions, leaf first, those of the kernel and then
    /// the user's, on an object: the reason, and what the object is called.
    fn why(stack: &str, event: &ObjectEvent) -> (String, Option<String>) {
        let (kernel, user) = stack.split_once('|').unwrap_or((stack, ""));
        let mut profile = Profile::new(Unit::Nanoseconds);
        let mut part = |functions: &str| {
            let functions = functions.split_whitespace().rev();
            functions.fold(StackId::EMPTY, |callers, function| {
                let name = profile.names.text(function);
                let frame = ProfileFrame::named(name, FrameKind::User);
                let frame = profile.frames.id(frame);
                profile.stacks.called(callers, frame)
            })
        };
        let stack = Stack {
            user: part(user),
            kernel: part(kernel),
        };
        let (mut objects, mut symbolizer) = (Objects::new(false), Symbolizer::new());
        objects.add(event, &mut symbolizer);
        let comm = profile.names.text("sleeper");
        let place = Place {
            stack,
            kernel: Captured::Nothing,
            object: event.id,
            objects: &objects,
            thread: THREAD,
            comm,
            end: WaitEnd::WAIT_END_UNKNOWN,
        };
        let threads = [(THREAD, "worker".to_owned())];
        let mut reasons = Reasons::new(threads.into_iter());
        let why = reasons.why(&mut profile, &place, || None, 3).unwrap();
        let told = format!("{}: {}", why.reason.name(), &*profile.names[why.detail]);
        (told, why.object.map(|name| profile.names[name].to_string()))
    }

    #[test]
    fn what_was_waited_on_is_told_where_the_wait_was_for_that() {
        const FIFO: u32 = 0o010_000;
        const REGULAR: u32 = 0o100_000;
        let read = "schedule anon_pipe_read vfs_read";
        let lock = "schedule rwsem_down_read_slowpath down_read";
        let disk = "io_schedule folio_wait_bit_common filemap_get_pages filemap_read vfs_read";
        let fault = "io_schedule folio_wait_bit_common filemap_fault handle_mm_fault";
        let poll = "schedule ep_poll do_epoll_wait";
        let wait = "schedule do_wait kernel_wait4";
        let mapped = object(ObjectKind::OBJECT_MAPPED, "lib.so");
        let child = object(ObjectKind::OBJECT_CHILD, "make");
        let anonymous = object(ObjectKind::OBJECT_ANONYMOUS, "[eventfd]");
        for (stack, event, reason, name) in [
            (
                read,
                file(FIFO, ""),
                "local IPC: pipe, read",
                Some("pipe:[5]"),
            ),
            (lock, file(FIFO, ""), "kernel lock: rwsem", None),
            (
                disk,
                file(REGULAR, "data"),
                "disk read: page cache",
                Some("…/data"),
            ),
            // The call was given another file than the pipe that it waits for.
            (read, file(REGULAR, "data"), "local IPC: pipe, read", None),
            (lock, file(REGULAR, "data"), "kernel lock: rwsem", None),
            (fault, mapped, "page fault: file", Some("…/lib.so")),
            (disk, mapped, "disk read: page cache", None),
            (wait, child, "child: process", Some("make")),
            (poll, child, "events: epoll", None),
            (poll, anonymous, "events: epoll", Some("eventfd")),
        ] {
            let expected = (reason.to_owned(), name.map(str::to_owned));
            assert_eq!(why(stack, &event), expected, "{stack}");
        }
    }

    #[test]
    fn futexes_are_called_what_is_known_of_them() {
        let kernel = "schedule futex_do_wait do_futex";
        for (user, value, reason, name) in [
            ("pthread_mutex_lock work", 0, "lock: mutex", Some("in work")),
            (
                "pthread_cond_wait run",
                0,
                "condition: condition variable",
                Some("in run"),
            ),
            // The arguments say so where no function does.
            ("syscall own_lock", 2, "lock: mutex", None),
            (
                "syscall own_join",
                THREAD.tid,
                "child: thread",
                Some("worker"),
            ),
            (
                "pthread_join main",
                THREAD.tid,
                "child: thread",
                Some("worker"),
            ),
            ("pthread_join main", 99, "child: thread", None),
            ("syscall own_wait", 99, "unknown: futex", None),
        ] {
            let expected = (reason.to_owned(), name.map(str::to_owned));
            let found = why(&format!("{kernel}|{user}"), &futex(value));
            assert_eq!(found, expected, "{user}");
        }
    }

    #[test]
    fn what_nothing_is_known_of_is_noted() {
        let mut reasons = Reasons::default();
        assert_eq!(reasons.note(), None);
        let mut wait = |function: &str, captured, events| {
            let mut profile = Profile::new(Unit::Nanoseconds);
            let name = profile.names.text(function);
            let frame = profile
                .frames
                .id(ProfileFrame::named(name, FrameKind::Kernel));
            let kernel = profile.stacks.called(StackId::EMPTY, frame);
            let objects = Objects::new(false);
            let place = Place {
                stack: Stack {
                    user: StackId::EMPTY,
                    kernel,
                },
                kernel: captured,
                object: 0,
                objects: &objects,
                thread: THREAD,
                comm: name,
                end: WaitEnd::WAIT_END_UNKNOWN,
            };
            let why = reasons.why(&mut profile, &place, || None, events);
            assert_eq!(why.unwrap().reason, Reason::Unknown);
            let nowhere = Place {
                stack: Stack::default(),
                ..place
            };
            assert!(reasons.why(&mut profile, &nowhere, || None, 1).is_none());
        };
        wait("some_wait", Captured::Nothing, 3);
        wait("some_wait", Captured::Nothing, 4);
        wait("another", Captured::Missed, 1);
        let note = reasons.note().unwrap();
        assert_eq!(
            note,
            "no reason is known of waits in another (1), some_wait (7)"
        );
        for at in 0..20 {
            reasons.unmatched.insert(format!("x{at:02}"), 1);
        }
        assert!(reasons.note().unwrap().ends_with("x17 (1) and 2 more"));
    }

    #[test]
    fn a_quota_is_why_a_thread_that_could_run_did_not() {
        let mut profile = Profile::new(Unit::Nanoseconds);
        let why = of_delay(&mut profile, WaitEnd::WAIT_END_QUOTA).unwrap();
        assert_eq!(
            (why.reason, why.idleness),
            (Reason::Throttle, Idleness::Waiting)
        );
        assert_eq!(&*profile.names[why.detail], "CPU quota");
        assert!(of_delay(&mut profile, WaitEnd::WAIT_END_UNKNOWN).is_none());
    }

    /// Of functions in a line, leaf first, the user's after a `|`.
    fn told(stack: &str) -> String {
        let (kernel, user) = stack.split_once('|').unwrap_or((stack, ""));
        let seen = of_kernel(kernel.split_whitespace());
        let (reason, detail) = reason(seen, user.split_whitespace(), || None);
        format!("{}: {detail}", reason.name())
    }

    #[test]
    fn stacks_as_kernels_have_them() {
        for (stack, expected) in [
            (
                "schedule do_nanosleep hrtimer_nanosleep __x64_sys_clock_nanosleep do_syscall_64",
                "sleep: for a time",
            ),
            (
                "__schedule schedule __do_sys_io_uring_enter do_syscall_64",
                "events: io_uring",
            ),
            (
                "__schedule schedule some_device_wait __do_sys_io_uring_enter do_syscall_64",
                "unknown: unknown",
            ),
            (
                "__schedule schedule schedule_hrtimeout_range_clock poll_schedule_timeout.constprop.0 do_sys_poll __x64_sys_poll",
                "events: poll",
            ),
            ("schedule ep_poll do_epoll_wait", "events: epoll"),
            (
                "schedule schedule_timeout unix_stream_read_generic unix_stream_recvmsg sock_recvmsg",
                "local IPC: receive",
            ),
            (
                "schedule_timeout __skb_wait_for_more_packets __skb_recv_datagram __unix_dgram_recvmsg",
                "local IPC: receive",
            ),
            (
                "schedule_timeout __skb_wait_for_more_packets udp_recvmsg",
                "network: receive",
            ),
            (
                "schedule_timeout wait_woken sk_wait_data tcp_recvmsg_locked tcp_recvmsg",
                "network: receive",
            ),
            (
                "schedule anon_pipe_read vfs_read ksys_read",
                "local IPC: pipe, read",
            ),
            (
                "schedule pipe_write vfs_write ksys_write",
                "local IPC: pipe, write",
            ),
            ("schedule do_wait kernel_wait4", "child: process"),
            (
                "schedule schedule_timeout __wait_for_common wait_for_completion_killable kernel_clone __x64_sys_vfork",
                "child: vfork",
            ),
            (
                "schedule rwsem_down_write_slowpath down_write dup_mmap copy_process kernel_clone",
                "kernel lock: rwsem",
            ),
            (
                "schedule something copy_process kernel_clone",
                "unknown: unknown",
            ),
            (
                "schedule get_signal arch_do_signal_or_restart",
                "stopped: by a signal",
            ),
            ("schedule something do_exit get_signal", "unknown: unknown"),
        ] {
            assert_eq!(told(stack), expected, "{stack}");
        }
    }

    #[test]
    fn disks_by_whose_sake_they_are_read_for() {
        for (stack, expected) in [
            (
                "io_schedule folio_wait_bit_common filemap_update_page filemap_get_pages filemap_read ext4_file_read_iter vfs_read",
                "disk read: page cache",
            ),
            (
                "io_schedule folio_wait_bit_common __folio_lock_or_retry filemap_fault __do_fault handle_mm_fault exc_page_fault",
                "page fault: file",
            ),
            (
                "io_schedule folio_wait_bit_common do_swap_page handle_mm_fault",
                "page fault: swap",
            ),
            (
                "schedule rwsem_down_read_slowpath down_read lock_mm handle_mm_fault",
                "kernel lock: rwsem",
            ),
            (
                "io_schedule folio_wait_bit_common folio_wait_writeback __filemap_fdatawait_range file_write_and_wait_range ext4_sync_file",
                "disk write: sync",
            ),
            (
                "schedule jbd2_log_wait_commit ext4_sync_file vfs_fsync_range",
                "disk write: journal",
            ),
            (
                "io_schedule __iomap_dio_rw iomap_dio_rw vfs_read",
                "disk read: direct",
            ),
            (
                "io_schedule __iomap_dio_rw iomap_dio_rw vfs_write",
                "disk write: direct",
            ),
            (
                "schedule balance_dirty_pages vfs_write",
                "throttle: dirty pages",
            ),
            (
                "io_schedule folio_wait_bit_common shrink_node do_try_to_free_pages handle_mm_fault",
                "memory: reclaim",
            ),
            (
                "schedule_timeout reclaim_throttle shrink_node try_to_free_pages",
                "memory: reclaim",
            ),
        ] {
            assert_eq!(told(stack), expected, "{stack}");
        }
    }

    #[test]
    fn futexes_are_what_user_functions_wait_for() {
        for (user, expected) in [
            ("__lll_lock_wait pthread_mutex_lock work", "lock: mutex"),
            (
                "__futex_abstimed_wait_common pthread_cond_wait take_gil PyEval_RestoreThread",
                "lock: GIL",
            ),
            (
                "__futex_abstimed_wait_common pthread_cond_wait run",
                "condition: condition variable",
            ),
            (
                "sem_clockwait PyThread_acquire_lock_timed",
                "lock: Python lock",
            ),
            (
                "sem_clockwait PyThread_acquire_lock_timed acquire_timed threading.py:Condition.wait queue.py:Queue.get",
                "condition: Python condition",
            ),
            (
                "sem_wait PyThread_acquire_lock_timed lock_PyThread_acquire_lock work.py:run",
                "lock: Python lock",
            ),
            (
                "pthread_cond_timedwait take_gil PyEval_RestoreThread acquire_timed threading.py:Condition.wait",
                "lock: GIL",
            ),
            ("sem_wait main", "condition: semaphore"),
            ("pthread_join main", "child: thread"),
            (
                "syscall std::sys::sync::mutex::futex::Mutex::lock_contended f",
                "lock: mutex",
            ),
            (
                "syscall parking_lot::raw_mutex::RawMutex::lock_slow f",
                "lock: mutex",
            ),
            (
                "runtime.futex runtime.futexsleep runtime.notesleep runtime.stopm",
                "condition: goroutine to run",
            ),
            (
                "syscall <std::sys::sync::mutex::futex::Mutex>::lock_contended f",
                "lock: mutex",
            ),
            (
                "syscall <std::sync::mpmc::list::Channel<T>>::recv::{closure#1} f",
                "condition: channel",
            ),
            (
                "syscall <std::thread::thread::Thread>::park_timeout <std::sync::mpmc::Receiver<T>>::recv",
                "condition: park",
            ),
            ("syscall [unknown]", "unknown: futex"),
            ("", "unknown: futex"),
        ] {
            let stack = format!("schedule futex_do_wait __futex_wait do_futex|{user}");
            assert_eq!(told(&stack), expected, "{user}");
        }
        assert_eq!(
            told("schedule futex_lock_pi|x"),
            "lock: priority-inheritance mutex"
        );
    }

    #[test]
    fn threads_of_the_kernels_wait_for_the_kernel() {
        assert_eq!(
            told("schedule worker_thread kthread"),
            "kernel: kernel thread"
        );
        assert_eq!(
            told("schedule strange_place x64_sys_call"),
            "unknown: unknown"
        );
        assert_eq!(told(""), "unknown: unknown");
    }
}
