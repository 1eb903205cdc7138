//! Rules for waits in functions of HotSpot. JDK 8 of some distributions has no symbols for them.

use profile::{Detail, Reason};

use crate::locks::Name::{Has, Is};
use crate::locks::{Locks, Row};

/// Rules that recognise waits in HotSpot. The programs recognise threads that enter monitors.
pub(super) const LOCKS: Locks = Locks {
    shared: Some(Detail::JavaMonitor),
    work: &[
        // A thread that needs memory, or asks for a collection: src/hotspot/share/gc/.
        Row {
            functions: &[
                Is("JVM_GC"),
                Has("CollectedHeap::attempt_allocation_slow"),
                Has("CollectedHeap::attempt_allocation_humongous"),
                Has("CollectedHeap::do_collection_pause"),
                Has("CollectedHeap::try_collect"),
                Has("G1CollectedHeap::collect"),
                Has("GenCollectedHeap::collect"),
                Has("GenCollectedHeap::mem_allocate_work"),
                Has("GenCollectorPolicy::mem_allocate_work"),
                Has("SerialHeap::collect"),
                Has("SerialHeap::mem_allocate_work"),
                Has("ParallelScavengeHeap::collect"),
                Has("ParallelScavengeHeap::mem_allocate"),
                Has("ShenandoahHeap::collect"),
                Has("handle_alloc_failure"),
                Has("ZPageAllocator::alloc_page_stall"),
                Has("GCLocker::stall_until_clear"),
                Has("GC_locker::stall_until_clear"),
            ],
            reason: Reason::Runtime,
            detail: Detail::GarbageCollection,
        },
        // A thread that the machine stops, with all others: runtime/safepoint.cpp.
        Row {
            functions: &[Has("SafepointSynchronize::block")],
            reason: Reason::Runtime,
            detail: Detail::Safepoint,
        },
        // A thread for which the machine's own thread works: runtime/vmThread.cpp.
        Row {
            functions: &[Has("VMThread::execute")],
            reason: Reason::Runtime,
            detail: Detail::VmOperation,
        },
        // Threads of the machine that wait for work: runtime/vmThread.cpp,
        // compiler/compileBroker.cpp, prims/jvm.cpp.
        Row {
            functions: &[
                Has("VMThread::wait_for_operation"),
                Has("CompileQueue::get"),
                Is("JVM_WaitForReferencePendingList"),
            ],
            reason: Reason::Condition,
            detail: Detail::RuntimeTask,
        },
    ],
    purposes: &[
        // Native code of java.lang.Thread.sleep: prims/jvm.cpp.
        Row {
            functions: &[
                Is("JVM_Sleep"),
                Is("JVM_SleepNanos"),
                Is("java.lang.Thread.sleep"),
                Is("java.lang.Thread.sleep0"),
                Is("java.lang.Thread.sleepNanos0"),
            ],
            reason: Reason::Sleep,
            detail: Detail::ForTime,
        },
    ],
    ..Locks::NONE
};
