//! Rules for waits in functions of CPython, and for the global interpreter lock (GIL).

use profile::{Detail, Reason};

use crate::locks::Name::{Has, Is};
use crate::locks::{Locks, Row};

/// Rules that recognise waits in CPython. The GIL is the only part of `_PyRuntime` that contains a
/// condition or a mutex of the C library (`struct _gil_runtime_state` of
/// `Include/internal/pycore_gil.h`).
pub(super) const LOCKS: Locks = Locks {
    global: Some("_PyRuntime"),
    shared: Some(Detail::Gil),
    work: &[],
    purposes: &[
        // Functions of Python/ceval_gil.c and Python/thread_pthread.h.
        Row {
            functions: &[
                Is("take_gil"),
                Is("PyEval_RestoreThread"),
                Is("PyEval_AcquireThread"),
                Is("PyGILState_Ensure"),
                Is("_PyEval_AcquireLock"),
            ],
            reason: Reason::Lock,
            detail: Detail::Gil,
        },
        // Functions of Modules/_queuemodule.c, which may be stripped, and of Lib/threading.py.
        // Names of functions have no class before 3.11.
        Row {
            functions: &[
                Is("_queue_SimpleQueue_get_impl"),
                Is("_queue_SimpleQueue_get"),
                Has("[_queue.cpython-"),
                Is("threading.py:Condition.wait"),
                Is("threading.py:wait"),
            ],
            reason: Reason::Condition,
            detail: Detail::PythonCondition,
        },
        Row {
            functions: &[
                Is("threading.py:Thread._wait_for_tstate_lock"),
                Is("threading.py:_wait_for_tstate_lock"),
                Is("threading.py:Thread.join"),
                Is("threading.py:_shutdown"),
            ],
            reason: Reason::Child,
            detail: Detail::Thread,
        },
    ],
    // Functions of Python/lock.c and Python/parking_lot.c, since 3.13.
    foundations: &[Row {
        functions: &[
            Is("PyThread_acquire_lock_timed"),
            Is("PyThread_acquire_lock"),
            Is("PyMutex_Lock"),
            Is("_PyMutex_LockTimed"),
            Is("_PyParkingLot_Park"),
            Is("_PySemaphore_Wait"),
        ],
        reason: Reason::Lock,
        detail: Detail::PythonLock,
    }],
    is_user: |name| name.contains(".py:") || name.starts_with('<'),
};
