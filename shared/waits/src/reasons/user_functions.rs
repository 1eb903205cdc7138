//! Finds the kinds of futex waits from user functions, because the kernel does not know them.
//!
//! The tables have exported functions of libraries, because stripped libraries have no other names.
//! They also have functions of runtimes that keep their names.

use languages::Name::{self, Has, Is};
use languages::{LANGUAGES, Locks, Row};
use profile::Reason::*;
use profile::{Detail, WaitKind};

/// Functions that wait on the futex themselves. The match nearest to the leaf decides.
const PRIMITIVES: &[Row] = &[
    // glibc and musl: nptl/, src/thread/.
    Row {
        functions: &[
            Is("pthread_mutex_lock"),
            Is("__pthread_mutex_lock"),
            Is("___pthread_mutex_lock"),
            Is("pthread_mutex_timedlock"),
            Is("__pthread_mutex_timedlock"),
            Is("pthread_mutex_clocklock"),
            Is("__pthread_mutex_clocklock"),
            Is("__pthread_mutex_lock_full"),
            Is("__lll_lock_wait"),
            Is("__GI___lll_lock_wait"),
            Is("__lll_lock_wait_private"),
            Is("__GI___lll_lock_wait_private"),
            Is("__lock"),
        ],
        reason: Lock,
        detail: Detail::Mutex,
    },
    Row {
        functions: &[
            Is("pthread_rwlock_rdlock"),
            Is("pthread_rwlock_wrlock"),
            Is("__pthread_rwlock_rdlock"),
            Is("__pthread_rwlock_wrlock"),
            Is("___pthread_rwlock_rdlock"),
            Is("___pthread_rwlock_wrlock"),
            Is("pthread_rwlock_timedrdlock"),
            Is("pthread_rwlock_timedwrlock"),
            Is("pthread_rwlock_clockrdlock"),
            Is("pthread_rwlock_clockwrlock"),
        ],
        reason: Lock,
        detail: Detail::Rwlock,
    },
    Row {
        functions: &[
            Is("pthread_cond_wait"),
            Is("pthread_cond_timedwait"),
            Is("pthread_cond_clockwait"),
            Is("__pthread_cond_wait"),
            Is("__pthread_cond_timedwait"),
            Is("___pthread_cond_wait"),
            Is("___pthread_cond_timedwait"),
            Is("___pthread_cond_clockwait"),
            Is("cnd_wait"),
            Is("cnd_timedwait"),
        ],
        reason: Condition,
        detail: Detail::ConditionVariable,
    },
    Row {
        functions: &[Is("pthread_cond_signal"), Is("pthread_cond_broadcast")],
        reason: Lock,
        detail: Detail::ConditionVariable,
    },
    Row {
        functions: &[
            Is("sem_wait"),
            Is("sem_timedwait"),
            Is("sem_clockwait"),
            Is("__new_sem_wait"),
            Is("___new_sem_wait"),
            Is("__new_sem_wait_slow64"),
            Is("__new_sem_wait_slow64.constprop.0"),
        ],
        reason: Condition,
        detail: Detail::Semaphore,
    },
    Row {
        functions: &[
            Is("pthread_barrier_wait"),
            Is("__pthread_barrier_wait"),
            Is("___pthread_barrier_wait"),
        ],
        reason: Condition,
        detail: Detail::Barrier,
    },
    Row {
        functions: &[
            Is("pthread_once"),
            Is("__pthread_once"),
            Is("___pthread_once"),
            Is("__pthread_once_slow"),
            Is("call_once"),
        ],
        reason: Condition,
        detail: Detail::Once,
    },
    Row {
        functions: &[
            Is("pthread_join"),
            Is("__pthread_join"),
            Is("___pthread_join"),
            Is("pthread_timedjoin_np"),
            Is("pthread_clockjoin_np"),
            Is("__pthread_clockjoin_ex"),
            Is("__pthread_timedjoin_ex"),
        ],
        reason: Child,
        detail: Detail::Thread,
    },
    // Rust: std::sys::sync, parking_lot.
    Row {
        functions: &[
            Has("sync::mutex::futex::Mutex::lock_contended"),
            Has("sync::reentrant_lock::ReentrantLock"),
            Has("RawMutex::lock_slow"),
            Has("RawReentrantMutex"),
        ],
        reason: Lock,
        detail: Detail::Mutex,
    },
    Row {
        functions: &[
            Has("sync::rwlock::futex::RwLock::"),
            Has("RawRwLock::lock_"),
            Has("RawRwLock::wait_for_readers"),
        ],
        reason: Lock,
        detail: Detail::Rwlock,
    },
    Row {
        functions: &[
            Has("sync::condvar::futex::Condvar::wait"),
            Has("parking_lot::condvar::Condvar::wait"),
            Has("Condvar::wait_until_internal"),
        ],
        reason: Condition,
        detail: Detail::ConditionVariable,
    },
    Row {
        functions: &[
            Has("sync::once::futex::Once::"),
            Has("parking_lot::once::Once::"),
        ],
        reason: Condition,
        detail: Detail::Once,
    },
    Row {
        functions: &[
            Has("futex::Parker::park"),
            Has("thread::Thread::park"),
            Is("std::thread::park"),
            Is("std::thread::park_timeout"),
        ],
        reason: Condition,
        detail: Detail::Park,
    },
    Row {
        functions: &[Has("std::sync::mpmc::"), Has("std::sync::mpsc::")],
        reason: Condition,
        detail: Detail::Channel,
    },
    // Go: runtime/lock_futex.go.
    Row {
        functions: &[
            Is("runtime.lock"),
            Is("runtime.lock2"),
            Is("runtime.lockWithRank"),
        ],
        reason: Lock,
        detail: Detail::RuntimeLock,
    },
    Row {
        functions: &[
            Is("runtime.notesleep"),
            Is("runtime.notetsleep_internal"),
            Is("runtime.notetsleep"),
            Is("runtime.notetsleepg"),
        ],
        reason: Condition,
        detail: Detail::GoroutineToRun,
    },
];

/// Functions that use a primitive for a purpose of their own. Any match decides.
const PURPOSES: &[Row] = &[
    // Java: src/hotspot/share/runtime/.
    Row {
        functions: &[
            Has("ObjectMonitor::enter"),
            Has("ObjectMonitor::EnterI"),
            Has("ObjectSynchronizer::enter"),
        ],
        reason: Lock,
        detail: Detail::JavaMonitor,
    },
    Row {
        functions: &[Has("ObjectMonitor::wait")],
        reason: Condition,
        detail: Detail::JavaMonitor,
    },
    Row {
        functions: &[
            Is("Unsafe_Park"),
            Has("Parker::park"),
            Is("jdk.internal.misc.Unsafe.park"),
            Is("sun.misc.Unsafe.park"),
        ],
        reason: Condition,
        detail: Detail::Park,
    },
    Row {
        functions: &[Has("Monitor::wait")],
        reason: Condition,
        detail: Detail::JvmMonitor,
    },
];

/// Returns the rules for the locks of each language.
fn locks() -> impl Iterator<Item = &'static Locks> {
    LANGUAGES.iter().map(|language| language.locks())
}

/// Returns the kind of a wait, if a function uses a primitive for a purpose of its own.
fn purpose(function: &str) -> Option<WaitKind> {
    find(PURPOSES, function).or_else(|| locks().find_map(|locks| find(locks.purposes, function)))
}

/// Returns the kind of a wait, if the function is a foundation of functions of a language.
fn foundation(function: &str) -> Option<WaitKind> {
    locks().find_map(|locks| find(locks.foundations, function))
}

/// Functions that lock, or wait for a condition, for their callers. They call the primitives above.
const WRAPPERS: &[Name] = &[
    // MariaDB: mysys/my_thr_init.c, mysys/thr_rwlock.c.
    Is("psi_mutex_lock"),
    Is("psi_rwlock_rdlock"),
    Is("psi_rwlock_wrlock"),
    Is("psi_cond_wait"),
    Is("psi_cond_timedwait"),
    Is("psi_prlock_rdlock"),
    Is("psi_prlock_wrlock"),
    Is("rw_pr_rdlock"),
    Is("rw_pr_wrlock"),
    // libuv: src/unix/thread.c.
    Is("uv_mutex_lock"),
    Is("uv_rwlock_rdlock"),
    Is("uv_rwlock_wrlock"),
    Is("uv_cond_wait"),
    Is("uv_cond_timedwait"),
    Is("uv_sem_wait"),
    Is("uv_barrier_wait"),
    // APR: locks/unix/.
    Is("apr_thread_mutex_lock"),
    Is("apr_thread_rwlock_rdlock"),
    Is("apr_thread_rwlock_wrlock"),
    Is("apr_thread_cond_wait"),
    Is("apr_thread_cond_timedwait"),
    // OpenSSL: crypto/threads_pthread.c.
    Is("CRYPTO_THREAD_read_lock"),
    Is("CRYPTO_THREAD_write_lock"),
];

/// Maximum number of functions, from the leaf, that can decide.
pub(super) const DEEPEST: usize = 12;

/// Returns the kind of a futex wait from the innermost functions, which are from leaf to root.
pub(super) fn wait_kind<'a>(functions: impl Iterator<Item = &'a str>) -> Option<WaitKind> {
    let (mut primitive, mut foundation_kind) = (None, None);
    let functions: Vec<&str> = functions.take(DEEPEST).collect();
    for row in locks().flat_map(|locks| locks.work) {
        if functions.iter().any(|name| is_any(row.functions, name)) {
            return Some(WaitKind::new(row.reason, row.detail));
        }
    }
    for function in functions {
        if let Some(purpose) = purpose(function) {
            return Some(purpose);
        }
        primitive = primitive.or_else(|| find(PRIMITIVES, function));
        foundation_kind = foundation_kind.or_else(|| foundation(function));
    }
    foundation_kind.or(primitive)
}

/// Returns the function that uses the lock. It is the function nearest to the leaf that belongs to
/// no lock library.
pub(super) fn user<'a>(functions: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let functions: Vec<&str> = functions.take(DEEPEST + 1).collect();
    let is_lock_function = |name: &&str| {
        let primitive = || find(PRIMITIVES, name);
        purpose(name)
            .or_else(primitive)
            .or_else(|| foundation(name))
            .is_some()
    };
    let last = functions.iter().rposition(is_lock_function)?;
    let mut users = functions[last + 1..].iter();
    for locks in locks() {
        let is_foundation = |name: &&str| find(locks.foundations, name).is_some();
        let user = users.clone().find(|name| (locks.is_user)(name));
        if let Some(user) = user.filter(|_| functions.iter().any(is_foundation)) {
            return Some(user);
        }
    }
    users.find(|name| !is_library_function(name)).copied()
}

/// Returns whether a function belongs to a library between the lock functions and their user.
fn is_library_function(name: &str) -> bool {
    const LIBRARIES: [&str; 4] = ["std::", "core::", "lock_api::", "parking_lot"];
    // An example is `<parking_lot::raw_mutex::RawMutex as lock_api::mutex::RawMutex>::lock`.
    let path = name.trim_start_matches('<');
    name.starts_with('[')
        || LIBRARIES.iter().any(|library| path.starts_with(library))
        || is_any(WRAPPERS, name)
}

fn find(rows: &[Row], function: &str) -> Option<WaitKind> {
    let row = rows.iter().find(|row| is_any(row.functions, function));
    row.map(|row| WaitKind::new(row.reason, row.detail))
}

/// Returns whether the function has one of these names.
pub(super) fn is_any(names: &[Name], function: &str) -> bool {
    // Newer Rust names have the form `<std::thread::Thread>::park`.
    let path = function.replace(['<', '>'], "");
    names.iter().any(|name| match name {
        Is(name) => function == *name,
        Has(part) => path.contains(part),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_uses_a_lock_is_of_no_library_for_locks() {
        for (functions, expected) in [
            ("__lll_lock_wait pthread_mutex_lock book main", Some("book")),
            (
                "__lll_lock_wait pthread_mutex_lock psi_mutex_lock tc_acquire_table main",
                Some("tc_acquire_table"),
            ),
            (
                "__lll_lock_wait pthread_mutex_lock rw_pr_wrlock [mariadbd] try_acquire_lock",
                Some("try_acquire_lock"),
            ),
            (
                "syscall RawMutex::lock_slow lock_api::mutex::Mutex<R,T>::lock work",
                Some("work"),
            ),
            (
                "sem_wait PyThread_acquire_lock_timed _PyEval_EvalFrameDefault work.py:run",
                Some("work.py:run"),
            ),
            ("syscall book main", None),
        ] {
            assert_eq!(user(functions.split(' ')), expected, "{functions}");
        }
        // This is the last function that is searched for locks.
        let mut deep = vec!["inner"; DEEPEST - 1];
        deep.extend(["pthread_mutex_lock", "work"]);
        assert_eq!(user(deep.into_iter()), Some("work"));
    }
}
