//! Places of what parked threads wait on, for programs: the object of `LockSupport.park`, and the
//! owner that a lock of java.util.concurrent has.

use bpf::types::headers::{hotspot_flags, hotspot_layout};

use super::heap::{Classes, Heap};
use super::layout::Machine;
use super::tables::{Tables, read_word};
use super::threads::ThreadLayout;
use crate::language::Pieces;

const THREAD: &str = "java/lang/Thread";
const OWNABLE: &str = "java/util/concurrent/locks/AbstractOwnableSynchronizer";
/// Names of the first element of the array with the classes that the machine itself knows.
const KNOWN_CLASSES: [&str; 2] = [
    "vmClasses::_klasses[static_cast<int>(vmClassID::Object_klass_knum)]",
    "SystemDictionary::_well_known_klasses[SystemDictionary::Object_klass_knum]",
];
/// Maximum number of elements of this array that are searched. Machines have about 120.
const MAX_CLASSES: usize = 256;

/// Returns the layout of the machine with the places for parked threads; `None` if the tables lack
/// one, or if the collector moves objects while threads run.
pub(super) fn with_parks(
    memory: &dyn Pieces,
    tables: &Tables,
    machine: &Machine,
    threads: &ThreadLayout,
) -> Option<hotspot_layout> {
    let heap = &threads.heap;
    let field = |name: &str| tables.offset(&[name]);
    let references = heap.reference_place()?;
    let known = known_classes(memory, tables)?;
    let class = |name: &str| {
        let is_class =
            |class: &&u64| Heap::class_name(memory, machine, **class).as_deref() == Some(name);
        known.iter().find(is_class).copied()
    };
    let (thread, ownable) = (class(THREAD)?, class(OWNABLE)?);
    let mut classes = Classes::default();
    let mut place = |class: u64, name: &str| {
        let offset = classes.field(memory, (machine, heap), class, name)?;
        u16::try_from(offset).ok()
    };
    let collects = tables.offset(&[
        "CollectedHeap::_is_stw_gc_active",
        "CollectedHeap::_is_gc_active",
    ])?;
    let count = field("CollectedHeap::_total_collections")?;
    let collected = read_word(memory, tables.address("Universe::_collectedHeap")?)?;
    let mut layout = hotspot_layout {
        reference_base: references.base,
        reference_shift: references.shift,
        collects: collected.checked_add(collects.into())?,
        collection_count: count.checked_sub(collects)?,
        ownable,
        thread_object: threads.object,
        object_thread: place(thread, "eetop")?,
        park_blocker: place(thread, "parkBlocker")?,
        first_super: field("Klass::_primary_supers[0]")?.checked_add(8)?,
        exclusive_owner: place(ownable, "exclusiveOwnerThread")?,
        ..machine.layout
    };
    let flags = [
        (
            references.is_address,
            hotspot_flags::HOTSPOT_REFERENCE_IS_ADDRESS,
        ),
        (threads.has_handle, hotspot_flags::HOTSPOT_THREAD_HAS_HANDLE),
    ];
    for (is_set, flag) in flags {
        layout.flags |= if is_set { flag.0 as u16 } else { 0 };
    }
    Some(layout)
}

/// Returns the addresses of the classes that the machine itself knows, and other words behind them.
fn known_classes(memory: &dyn Pieces, tables: &Tables) -> Option<Vec<u64>> {
    let first = KNOWN_CLASSES.iter().find_map(|name| tables.address(name))?;
    let bytes = memory.bytes(first, 8 * MAX_CLASSES);
    let (words, _) = bytes.as_chunks();
    Some(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// Returns whether a class, such as `java/util/concurrent/locks/StampedLock`, is that of a lock:
/// threads that wait on its objects wait until other threads unlock them.
pub(super) fn is_lock(class: &str) -> bool {
    let Some(name) = class.strip_prefix("java/util/concurrent/locks/") else {
        return false;
    };
    // The synchronizers of a lock are classes within its class.
    let outer = name.split('$').next().unwrap_or(name);
    matches!(
        outer,
        "ReentrantLock" | "ReentrantReadWriteLock" | "StampedLock"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_known_by_their_classes() {
        for lock in [
            "ReentrantLock$NonfairSync",
            "ReentrantReadWriteLock$FairSync",
        ] {
            assert!(is_lock(&format!("java/util/concurrent/locks/{lock}")));
        }
        for other in [
            "java/util/concurrent/locks/AbstractQueuedSynchronizer$ConditionObject",
            "java/util/concurrent/CountDownLatch$Sync",
            "shop/ReentrantLock",
        ] {
            assert!(!is_lock(other));
        }
    }
}
