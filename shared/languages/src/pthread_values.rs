//! Values that `pthread_setspecific` stores for each thread, as in
//! `bpf/include/languages/pthread_values.h`.

use unwind::Memory;

use crate::language::Pieces;

/// Offsets in `struct pthread` (nptl/descr.h of glibc), which is at the thread pointer. The values
/// of the first keys are at `FIRST_VALUES`. The addresses of blocks with other values are at
/// `OTHER_VALUES`. All blocks have the same number of values.
const FIRST_VALUES: u64 = 0x310;
const OTHER_VALUES: u64 = 0x510;
const VALUES_AT_ONCE: u64 = 32;
const MAX_KEYS: u64 = 1024;
/// Size of `struct pthread_key_data`, and the offset of its value, which is the second word.
const VALUE_SIZE: u64 = 16;
const VALUE: u64 = 8;

/// Returns the value of `key` for the thread with this thread pointer; `None` if it cannot be read.
pub(crate) fn pthread_value(
    memory: &mut (impl Memory + ?Sized),
    thread_pointer: u64,
    key: u64,
) -> Option<u64> {
    if key >= MAX_KEYS || thread_pointer == 0 {
        return None;
    }
    let mut values = thread_pointer.wrapping_add(FIRST_VALUES);
    if key >= VALUES_AT_ONCE {
        let others = OTHER_VALUES + key / VALUES_AT_ONCE * 8;
        values = memory.word(thread_pointer.wrapping_add(others))?;
    }
    let value = key % VALUES_AT_ONCE * VALUE_SIZE + VALUE;
    if values == 0 {
        return None;
    }
    memory.word(values.wrapping_add(value))
}

/// Returns the values of the first keys of the thread with this thread pointer.
pub(crate) fn first_values(memory: &dyn Pieces, thread_pointer: u64) -> Option<Vec<u64>> {
    let start = thread_pointer.checked_add(FIRST_VALUES)?;
    let length = (VALUES_AT_ONCE * VALUE_SIZE) as usize;
    let bytes = memory.bytes(start, length);
    let (pairs, _) = bytes.as_chunks::<{ VALUE_SIZE as usize }>();
    let values = pairs.iter().filter_map(|pair| pair.last_chunk());
    Some(values.map(|value| u64::from_le_bytes(*value)).collect())
}
