use std::array;
use std::sync::atomic::AtomicU32;

use bpf::types::{ObjectEvent, ObjectKind};
use profile::{Frame as ProfileFrame, FrameKind, Sample, Unit, Weight};
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

/// The part of a stack that these functions are, leaf first.
fn part(profile: &mut Profile, functions: &str) -> StackId {
    let functions = functions.split_whitespace().rev();
    let frames: Vec<_> = functions
        .map(|function| profile.frame(function, FrameKind::User))
        .collect();
    profile.stacks.add(frames)
}

/// Why a thread was blocked in these functions, leaf first, those of the kernel and then
/// the user's, on an object: the reason, and what the object is called.
fn why(stack: &str, event: &ObjectEvent) -> (String, Option<String>) {
    let (kernel, user) = stack.split_once('|').unwrap_or((stack, ""));
    let mut profile = Profile::new(Unit::Nanoseconds);
    let stack = Stack {
        user: part(&mut profile, user),
        kernel: part(&mut profile, kernel),
    };
    let (mut objects, mut symbolizer) = (Objects::new(false), Symbolizer::new());
    objects.add(event, &mut symbolizer);
    objects.call_all_futexes(PYTHON_RUNTIME);
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
fn the_lock_of_an_interpreter_is_known_by_its_variable() {
    // In a variable, as every futex is here that this program has.
    static FUTEX: AtomicU32 = AtomicU32::new(0);
    let futex = ObjectEvent {
        pid: std::process::id(),
        address: FUTEX.as_ptr() as u64,
        ..futex(0)
    };
    let kernel = "schedule futex_do_wait do_futex";
    // The second is stripped, and the third knows the C library's functions alone.
    for user in ["take_gil eval", "eval", "pthread_cond_timedwait eval"] {
        let found = why(&format!("{kernel}|{user}"), &futex);
        let expected = ("lock: GIL".to_owned(), Some(PYTHON_RUNTIME.to_owned()));
        assert_eq!(found, expected, "{user}");
    }
}

/// Whether a thread that waited for events had work, by what it waited on and how that ended,
/// before others of its waits are asked and after.
fn idleness(event: &ObjectEvent, end: WaitEnd) -> [Idleness; 2] {
    let mut profile = Profile::new(Unit::Nanoseconds);
    let stack = Stack {
        user: StackId::EMPTY,
        kernel: part(&mut profile, "schedule ep_poll do_epoll_wait"),
    };
    let (mut objects, mut symbolizer) = (Objects::new(false), Symbolizer::new());
    objects.add(event, &mut symbolizer);
    let comm = profile.names.text("worker");
    let place = Place {
        stack,
        kernel: Captured::Nothing,
        object: event.id,
        objects: &objects,
        thread: THREAD,
        comm,
        end,
    };
    let mut reasons = Reasons::default();
    let why = reasons.why(&mut profile, &place, || None, 3).unwrap();
    let sample = Sample {
        comm,
        thread: Some(THREAD),
        stack,
        state: None,
        wakers: None,
        labels: profile.labels_of(Some(why), false),
    };
    profile.add(sample, Weight::default());
    reasons.judge_idleness(&mut profile);
    let judged = profile.samples.keys().next().unwrap();
    [why, profile.why(judged).unwrap()].map(|why| why.idleness)
}

#[test]
fn the_side_of_a_socket_tells_whether_there_was_work() {
    let socket = |side: SocketSide| ObjectEvent {
        side: side.0 as u16,
        ..object(ObjectKind::OBJECT_SOCKET, "")
    };
    for (side, expected) in [
        (SocketSide::SIDE_ANSWERS, Idleness::Idle),
        (SocketSide::SIDE_ASKS, Idleness::Waiting),
        (SocketSide::SIDE_UNKNOWN, Idleness::Unknown),
    ] {
        let found = idleness(&socket(side), WaitEnd::WAIT_END_UNKNOWN);
        assert_eq!(found, [expected; 2], "{side:?}");
    }
}

#[test]
fn whether_there_was_work_is_judged_once_all_waits_are_there() {
    let found = idleness(&file(0, "data"), WaitEnd::WAIT_END_NEW_WORK);
    assert_eq!(found, [Idleness::Unknown, Idleness::Idle]);
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
        // A lock that is waited for on the way stays one.
        (
            "schedule rwsem_down_read_slowpath down_read shrink_node try_to_free_pages",
            "kernel lock: rwsem",
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
