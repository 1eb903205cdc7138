use profile::{Frame as ProfileFrame, FrameKind, Unit};

use super::*;

const THREAD: ThreadId = ThreadId { pid: 7, tid: 8 };

#[test]
fn what_nothing_is_known_of_is_noted() {
    let mut reasons = Reasons::new(std::iter::empty());
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
        let wait = reasons.wait(&mut profile, &place, || None, events);
        assert_eq!(wait.unwrap().kind.reason, Reason::Unknown);
        let nowhere = Place {
            stack: Stack::default(),
            ..place
        };
        assert!(reasons.wait(&mut profile, &nowhere, || None, 1).is_none());
    };
    wait("some_wait", 1, 3);
    wait("some_wait", 1, 4);
    wait("another", 2, 1);
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

/// Describes the wait of a stack. `stack` has kernel functions from leaf to root, and user
/// functions after a `|`.
fn describe(stack: &str) -> String {
    let (kernel, user) = stack.split_once('|').unwrap_or((stack, ""));
    let seen = from_kernel_functions(kernel.split_whitespace());
    let kind = kind(seen, user.split_whitespace(), || None);
    format!(
        "{}: {}",
        kind.reason.name(),
        kind.detail.known_name().unwrap_or_default()
    )
}

#[test]
fn stacks_as_kernels_have_them() {
    for (stack, expected) in [
        (
            "schedule do_nanosleep hrtimer_nanosleep __x64_sys_clock_nanosleep do_syscall_64",
            "sleep: for a time",
        ),
        // The stack of a sleep that continues after a signal or a stop.
        (
            "x64_sys_call do_syscall_64 entry_SYSCALL_64_after_hwframe",
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
            "stopped: frozen",
        ),
        (
            "schedule do_signal_stop get_signal arch_do_signal_or_restart",
            "stopped: by a signal",
        ),
        ("schedule something do_exit get_signal", "unknown: unknown"),
        (
            "schedule do_exit do_group_exit get_signal",
            "stopped: until the core dump is written",
        ),
        (
            "schedule schedule_timeout __wait_for_common wait_for_completion_state vfs_coredump get_signal",
            "child: other threads of the process",
        ),
    ] {
        assert_eq!(describe(stack), expected, "{stack}");
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
        // The thread waits for a kernel lock on the way, so the reason is the lock.
        (
            "schedule rwsem_down_read_slowpath down_read shrink_node try_to_free_pages",
            "kernel lock: rwsem",
        ),
    ] {
        assert_eq!(describe(stack), expected, "{stack}");
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
        assert_eq!(describe(&stack), expected, "{user}");
    }
    assert_eq!(
        describe("schedule futex_lock_pi|x"),
        "lock: priority-inheritance mutex"
    );
}

#[test]
fn threads_of_the_kernels_wait_for_the_kernel() {
    assert_eq!(
        describe("schedule worker_thread kthread"),
        "kernel: kernel thread"
    );
    for (stack, expected) in [
        (
            "__schedule schedule schedule_timeout io_wq_worker ret_from_fork",
            "kernel: io_uring worker",
        ),
        (
            "__schedule schedule io_sq_thread ret_from_fork",
            "kernel: io_uring worker",
        ),
        // A worker that runs a call for a process waits as the process would.
        (
            "schedule wait_for_partner fifo_open do_dentry_open io_openat2 io_wq_submit_work io_worker_handle_work io_wq_worker",
            "local IPC: pipe, open",
        ),
        (
            "schedule some_device_wait io_wq_submit_work io_worker_handle_work io_wq_worker",
            "unknown: unknown",
        ),
        (
            "schedule schedule_timeout io_wqe_worker kthread ret_from_fork",
            "kernel: io_uring worker",
        ),
        (
            "schedule vhost_task_fn ret_from_fork",
            "kernel: vhost worker",
        ),
    ] {
        assert_eq!(describe(stack), expected, "{stack}");
    }
    assert_eq!(
        describe("schedule strange_place x64_sys_call"),
        "unknown: unknown"
    );
    assert_eq!(describe(""), "unknown: unknown");
}
