//! Table of kernel functions in which threads wait, and the reasons of these waits.
//!
//! The table has the names of Linux 5.10 to 7.2. If compilers inline a function, its row also has
//! the caller. A function that sleeps for many purposes is a primitive. Any other row nearer to the
//! root overrides it.

use profile::Detail;
use profile::Reason::{self, *};

use crate::arch::{SYSTEM_CALL_ENTRY, compat_system_call, system_call};

/// Meaning of a function for a stack that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The wait has this reason, whatever other functions the stack has.
    For(Reason, Detail),
    /// The wait has this reason if no other row matches.
    Primitive(Reason, Detail),
    /// The wait has this reason if the function called the scheduler, or a completion that called
    /// the scheduler.
    IfItSleeps(Reason, Detail),
}

use Meaning::{For, IfItSleeps, Primitive};

/// Functions with the same meaning.
type Row = (&'static [&'static str], Meaning);

const ROWS: &[Row] = &[
    // Stopped threads: signal.c, ptrace.c, freezer.c.
    (
        &["do_signal_stop", "do_jobctl_trap"],
        For(Stopped, Detail::BySignal),
    ),
    // This function contains do_freezer_trap() if that is inlined. The thread's state shows a
    // do_signal_stop().
    (&["get_signal"], IfItSleeps(Stopped, Detail::Frozen)),
    (&["ptrace_stop"], For(Stopped, Detail::ByDebugger)),
    (
        &["__refrigerator", "do_freezer_trap"],
        For(Stopped, Detail::Frozen),
    ),
    (
        &[
            "do_sigtimedwait",
            "sigsuspend",
            "do_sys_pause",
            system_call!("pause"),
            "__do_sys_pause",
            compat_system_call!("pause"),
        ],
        For(Stopped, Detail::UntilSignal),
    ),
    // Limits: page-writeback.c, blk-rq-qos.c, blk-iocost.c, blk-cgroup.c, memcontrol.c.
    (
        &[
            "balance_dirty_pages",
            "balance_dirty_pages_ratelimited_flags",
        ],
        For(Throttle, Detail::DirtyPages),
    ),
    (
        &[
            "rq_qos_wait",
            "ioc_rqos_throttle",
            "blkcg_maybe_throttle_current",
            "blkcg_maybe_throttle_blkg",
            "wbt_wait",
            "throtl_pending_timer_fn",
        ],
        For(Throttle, Detail::DiskBandwidth),
    ),
    (&["blk_mq_get_tag"], For(Throttle, Detail::DeviceQueue)),
    (
        &[
            "mem_cgroup_handle_over_high",
            "__mem_cgroup_handle_over_high",
        ],
        For(Throttle, Detail::MemoryHigh),
    ),
    // Locks of the kernel: locking/, sock.c, dcache.c.
    (
        &[
            "__mutex_lock",
            "__mutex_lock_slowpath",
            "mutex_lock",
            "mutex_lock_interruptible",
            "mutex_lock_killable",
            "mutex_lock_nested",
            "ww_mutex_lock",
            "ww_mutex_lock_interruptible",
            "mutex_lock_io",
        ],
        For(KernelLock, Detail::Mutex),
    ),
    (
        &[
            "rwsem_down_read_slowpath",
            "rwsem_down_write_slowpath",
            "down_read",
            "down_read_interruptible",
            "down_read_killable",
            "down_write",
            "down_write_killable",
            "__rwsem_down_read_slowpath",
        ],
        For(KernelLock, Detail::Rwsem),
    ),
    (
        &[
            "__down",
            "down",
            "down_interruptible",
            "down_killable",
            "down_timeout",
            "__down_common",
            "___down_common",
            "__down_killable",
        ],
        For(KernelLock, Detail::Semaphore),
    ),
    (
        &[
            "percpu_down_write",
            "__percpu_down_read",
            "percpu_rwsem_wait",
        ],
        For(KernelLock, Detail::PercpuRwsem),
    ),
    (
        &["__lock_sock", "lock_sock_nested"],
        For(KernelLock, Detail::Socket),
    ),
    (
        &[
            "rt_mutex_slowlock",
            "rt_mutex_slowlock_block",
            "__rt_mutex_slowlock",
        ],
        Primitive(KernelLock, Detail::RtMutex),
    ),
    (
        &["d_alloc_parallel"],
        For(KernelLock, Detail::DirectoryEntry),
    ),
    // Futexes: futex.c. User frames show the kind of all other futex waits.
    (
        &[
            "futex_lock_pi",
            "rt_mutex_wait_proxy_lock",
            "futex_wait_requeue_pi",
        ],
        For(Lock, Detail::PriorityInheritanceMutex),
    ),
    // File locks: locks.c.
    (
        &[
            "locks_lock_inode_wait",
            "flock_lock_inode_wait",
            "posix_lock_inode_wait",
            "fcntl_setlk",
            "do_lock_file_wait",
        ],
        For(Lock, Detail::File),
    ),
    // Sleeps: hrtimer.c, timerfd.c.
    (
        &["do_nanosleep", "hrtimer_nanosleep", "alarm_timer_nsleep"],
        For(Sleep, Detail::ForTime),
    ),
    // After a signal has interrupted a sleep, restart_syscall() resumes it by a jump to
    // do_nanosleep(). The stack omits do_nanosleep() as a function of the scheduler, so only the
    // entry code remains.
    (
        &[
            "hrtimer_nanosleep_restart",
            SYSTEM_CALL_ENTRY[0],
            SYSTEM_CALL_ENTRY[1],
        ],
        IfItSleeps(Sleep, Detail::ForTime),
    ),
    (
        &["timerfd_read", "timerfd_read_iter"],
        For(Sleep, Detail::Timerfd),
    ),
    // Events: select.c, eventpoll.c, io_uring.c, aio.c.
    (
        &["do_poll", "do_sys_poll", "do_compat_poll"],
        For(Events, Detail::Poll),
    ),
    (
        &["do_select", "core_sys_select", "compat_core_sys_select"],
        For(Events, Detail::Select),
    ),
    (
        &["ep_poll", "do_epoll_wait", "do_epoll_pwait"],
        For(Events, Detail::Epoll),
    ),
    (
        &["io_cqring_wait", "io_cqring_schedule"],
        For(Events, Detail::IoUring),
    ),
    // Until 6.1, io_cqring_wait() is inlined here. Requests that this function submits may sleep,
    // too.
    (
        &["__do_sys_io_uring_enter", "__se_sys_io_uring_enter"],
        IfItSleeps(Events, Detail::IoUring),
    ),
    (
        &["read_events", "do_io_getevents"],
        For(Events, Detail::Aio),
    ),
    // Network: net/. Functions nearer to the root show whether the socket is local or netlink.
    (
        &["sk_wait_data", "__skb_wait_for_more_packets"],
        Primitive(Network, Detail::Receive),
    ),
    (
        &[
            "sk_stream_wait_memory",
            "sock_alloc_send_pskb",
            "sock_wait_for_wmem",
        ],
        Primitive(Network, Detail::Send),
    ),
    (
        &["inet_csk_accept", "inet_csk_wait_for_connect"],
        For(Network, Detail::Accept),
    ),
    (
        &[
            "__inet_stream_connect",
            "inet_wait_for_connect",
            "sk_stream_wait_connect",
        ],
        For(Network, Detail::Connect),
    ),
    (
        &["sk_stream_wait_close", "tcp_close"],
        For(Network, Detail::Close),
    ),
    (&["unix_accept"], For(LocalIpc, Detail::Accept)),
    (
        &["unix_stream_connect", "unix_wait_for_peer"],
        For(LocalIpc, Detail::Connect),
    ),
    (
        &[
            "unix_stream_read_generic",
            "unix_stream_data_wait",
            "unix_stream_recvmsg",
            "__unix_dgram_recvmsg",
            "unix_dgram_recvmsg",
        ],
        For(LocalIpc, Detail::Receive),
    ),
    (
        &["unix_stream_sendmsg", "unix_dgram_sendmsg"],
        For(LocalIpc, Detail::Send),
    ),
    (
        &["netlink_recvmsg", "netlink_attachskb"],
        For(LocalIpc, Detail::Netlink),
    ),
    // Local IPC: pipe.c, eventfd.c, signalfd.c, notify/, tty/, ipc/.
    (
        &[
            "pipe_read",
            "anon_pipe_read",
            "fifo_pipe_read",
            "pipe_wait_readable",
        ],
        For(LocalIpc, Detail::PipeRead),
    ),
    (
        &[
            "pipe_write",
            "anon_pipe_write",
            "fifo_pipe_write",
            "pipe_wait_writable",
        ],
        For(LocalIpc, Detail::PipeWrite),
    ),
    (
        &["wait_for_partner", "fifo_open"],
        For(LocalIpc, Detail::PipeOpen),
    ),
    (
        &[
            "splice_from_pipe_next",
            "splice_from_pipe",
            "opipe_prep",
            "ipipe_prep",
        ],
        For(LocalIpc, Detail::PipeSplice),
    ),
    (
        &["eventfd_read", "eventfd_write"],
        For(LocalIpc, Detail::Eventfd),
    ),
    (
        &[
            "userfaultfd_ctx_read",
            "userfaultfd_read",
            "userfaultfd_read_iter",
        ],
        For(LocalIpc, Detail::Userfaultfd),
    ),
    (
        &["signalfd_read", "signalfd_read_iter", "signalfd_dequeue"],
        For(LocalIpc, Detail::Signalfd),
    ),
    (
        &["inotify_read", "fanotify_read"],
        For(LocalIpc, Detail::FileNotification),
    ),
    (
        &[
            "n_tty_read",
            "n_tty_write",
            "tty_wait_until_sent",
            "n_tty_wait_for_input",
        ],
        For(LocalIpc, Detail::Terminal),
    ),
    (
        &[
            "do_msgrcv",
            "do_msgsnd",
            "wq_sleep",
            "do_mq_timedreceive",
            "do_mq_timedsend",
        ],
        For(LocalIpc, Detail::MessageQueue),
    ),
    (
        &["do_semtimedop", "__do_semtimedop"],
        For(LocalIpc, Detail::SystemVSemaphore),
    ),
    // Children: exit.c, fork.c, umh.c.
    (
        &["do_wait", "kernel_wait4", "kernel_waitid"],
        For(Child, Detail::Process),
    ),
    (
        &["wait_for_vfork_done", "kernel_clone", "_do_fork"],
        IfItSleeps(Child, Detail::Vfork),
    ),
    (
        &["call_usermodehelper_exec"],
        For(Child, Detail::KernelHelper),
    ),
    (
        &["de_thread", "coredump_wait"],
        For(Child, Detail::OtherThreads),
    ),
    // These functions contain coredump_wait() if that is inlined.
    (
        &["do_coredump", "vfs_coredump"],
        IfItSleeps(Child, Detail::OtherThreads),
    ),
    // These functions contain coredump_task_exit() if that is inlined; before 5.16 exit_mm()
    // contains it.
    (
        &["coredump_task_exit", "do_exit", "exit_mm"],
        IfItSleeps(Stopped, Detail::CoreDump),
    ),
    // Page faults: userfaultfd.c, migrate.c.
    (&["handle_userfault"], For(PageFault, Detail::Userfaultfd)),
    (
        &["migration_entry_wait", "migration_entry_wait_on_locked"],
        For(PageFault, Detail::Migration),
    ),
    // Journals: jbd2/, xfs/, btrfs/.
    (
        &[
            "jbd2_log_wait_commit",
            "jbd2_journal_commit_transaction",
            "do_get_write_access",
            "start_this_handle",
            "wait_transaction_locked",
            "add_transaction_credits",
            "xlog_wait_on_iclog",
            "xfs_log_force_seq",
            "xfs_log_force_lsn",
            "wait_log_commit",
            "wait_for_commit",
            "btrfs_wait_ordered_range",
            "btrfs_wait_for_commit",
        ],
        For(DiskWrite, Detail::Journal),
    ),
    // Disks: filemap.c, fs-writeback.c, sync.c, blk-flush.c.
    (
        &[
            "wait_on_page_writeback",
            "folio_wait_writeback",
            "blkdev_issue_flush",
            "wb_wait_for_completion",
            "vfs_fsync_range",
            "vfs_fsync",
            "ksys_sync",
            "sync_inodes_sb",
            "file_write_and_wait_range",
            "__filemap_fdatawait_range",
            "filemap_fdatawait_range",
            system_call!("msync"),
            "__sync_dirty_buffer",
            "sync_dirty_buffer",
            "ksys_sync_file_range",
            "sync_file_range",
        ],
        For(DiskWrite, Detail::Sync),
    ),
    (
        &[
            "generic_file_buffered_read",
            "filemap_read",
            "filemap_get_pages",
            "filemap_update_page",
            "mpage_readahead",
            "page_cache_ra_unbounded",
            "ext4_bread",
            "__bread_gfp",
            "read_mapping_page",
            "do_read_cache_folio",
            "ext4_read_bh_lock",
        ],
        For(DiskRead, Detail::PageCache),
    ),
    (
        &[
            "wait_on_page_bit_common",
            "folio_wait_bit_common",
            "wait_on_page_bit",
            "folio_wait_bit",
            "__lock_page",
            "__lock_page_killable",
            "__folio_lock",
            "__folio_lock_killable",
            "__folio_lock_or_retry",
            "__wait_on_buffer",
            "bit_wait_io",
            "xfs_buf_iowait",
        ],
        Primitive(DiskRead, Detail::PageCache),
    ),
    (
        &[
            "iomap_dio_rw",
            "__iomap_dio_rw",
            "blkdev_direct_IO",
            "__blkdev_direct_IO",
            "__blkdev_direct_IO_simple",
            "submit_bio_wait",
            "blk_execute_rq",
        ],
        Primitive(DiskRead, Detail::Direct),
    ),
    (
        &[
            "vfs_write",
            "new_sync_write",
            "do_iter_write",
            "vfs_writev",
            "ksys_pwrite64",
            "do_pwritev",
            "io_write",
            "aio_write",
        ],
        Primitive(DiskWrite, Detail::Writes),
    ),
    // Network and user file systems: fuse/, nfs/, sunrpc/, smb/, 9p/.
    (
        &["request_wait_answer", "fuse_wait_on_page_writeback"],
        For(Device, Detail::FuseServer),
    ),
    (
        &[
            "rpc_wait_bit_killable",
            "nfs_wait_bit_killable",
            "nfs_wait_client_init_complete",
            "wait_for_response",
            "p9_client_rpc",
        ],
        For(Network, Detail::FileSystem),
    ),
    // Devices: dma-buf/, kvm/, ioctl.
    (
        &[
            "dma_fence_default_wait",
            "dma_fence_wait_timeout",
            "dma_resv_wait_timeout",
            "drm_syncobj_array_wait_timeout",
        ],
        For(Device, Detail::Gpu),
    ),
    (
        &["kvm_vcpu_block", "kvm_vcpu_halt"],
        For(Device, Detail::Guest),
    ),
    (
        &[system_call!("ioctl"), "__se_sys_ioctl"],
        Primitive(Device, Detail::Ioctl),
    ),
    // Services of the kernel.
    (
        &[
            "__wait_rcu_gp",
            "synchronize_rcu",
            "synchronize_rcu_normal",
            "synchronize_rcu_expedited",
        ],
        For(Kernel, Detail::RcuGracePeriod),
    ),
    (
        &[
            "__flush_work",
            "__flush_workqueue",
            "flush_work",
            "flush_workqueue",
        ],
        For(Kernel, Detail::WorkQueue),
    ),
    (
        &["perf_event_release_kernel", "perf_install_in_context"],
        Primitive(Kernel, Detail::PerfEvent),
    ),
    (
        &[
            "kthread_stop",
            "kthread_create_on_node",
            "__kthread_create_on_node",
        ],
        For(Kernel, Detail::KernelThread),
    ),
    (
        &[
            "wait_for_completion",
            "__wait_for_common",
            "wait_for_common",
            "wait_for_completion_killable",
            "wait_for_completion_interruptible",
            "wait_for_completion_state",
            "wait_for_completion_timeout",
        ],
        Primitive(Kernel, Detail::Completion),
    ),
    (
        &["msleep", "usleep_range", "usleep_range_state", "ssleep"],
        Primitive(Kernel, Detail::Pause),
    ),
    // Kernel workers in processes: io-wq.c, sqpoll.c, vhost_task.c.
    (
        &["io_wq_worker", "io_wqe_worker", "io_sq_thread"],
        IfItSleeps(Kernel, Detail::RingWorker),
    ),
    (
        &["vhost_task_fn", "vhost_worker"],
        IfItSleeps(Kernel, Detail::VhostWorker),
    ),
    (
        &["kthread", "kthreadd"],
        Primitive(Kernel, Detail::KernelThread),
    ),
];

/// Functions of memory reclaim (vmscan.c, compaction.c).
pub(super) const RECLAIM: &[&str] = &[
    "do_try_to_free_pages",
    "try_to_free_pages",
    "try_to_free_mem_cgroup_pages",
    "reclaim_throttle",
    "try_to_compact_pages",
    "shrink_node",
    "mem_cgroup_out_of_memory",
];

/// Functions of a page fault (memory.c, swap_state.c).
pub(super) const FAULT: &[&str] = &["handle_mm_fault", "__handle_mm_fault"];
/// Functions of a page fault that reads from swap.
pub(super) const SWAP: &[&str] = &["do_swap_page"];

/// Functions of a futex wait. The kernel does not know its kind.
pub(super) const FUTEX: &[&str] = &[
    "futex_wait_queue_me",
    "futex_wait_queue",
    "futex_do_wait",
    "futex_wait",
    "__futex_wait",
    "futex_wait_multiple",
    "futex_wait_multiple_setup",
    "do_futex",
];

/// Returns the meaning of a function, if the table has the function.
pub(super) fn meaning(function: &str) -> Option<Meaning> {
    let row = ROWS
        .iter()
        .find(|(functions, _)| functions.contains(&function));
    row.map(|(_, meaning)| *meaning)
}

/// Returns whether a function belongs to the scheduler. The stack of every wait has such functions.
pub(super) fn is_scheduler(function: &str) -> bool {
    let function = function.trim_start_matches('_');
    [
        "schedule",
        "io_schedule",
        "preempt_schedule",
        "finish_task_switch",
        "traceiter_sched",
        "bpf_",
    ]
    .iter()
    .any(|prefix| function.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_function_is_in_one_row() {
        let mut seen = HashSet::new();
        let all = ROWS.iter().flat_map(|(functions, _)| *functions);
        let all = all.chain(RECLAIM).chain(FAULT).chain(SWAP).chain(FUTEX);
        for function in all {
            assert!(seen.insert(function), "{function} is there twice");
            assert!(!is_scheduler(function), "{function} is the scheduler's");
        }
    }
}
