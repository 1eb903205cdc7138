use std::collections::HashMap;
use std::time::Duration;

use process::ProcessMemory;
use proptest::prelude::*;

use super::*;
use crate::python::LAYOUTS;

const RUNTIME: u64 = 0x1_0000;
const SELF: u64 = 0x2_0000;
const THREAD: u64 = 0x3_0000;
const CFRAME: u64 = 0x4_0000;
const FRAMES: u64 = 0x5_0000;
const CODE: u64 = 0x6_0000;

/// Made-up memory. Its first page is unreadable. All other bytes are 0 unless a test wrote to them.
#[derive(Clone, Default)]
struct Made(HashMap<u64, u8>);

impl Made {
    fn write(&mut self, address: u64, bytes: &[u8]) {
        let at = (address..).zip(bytes.iter().copied());
        self.0.extend(at);
    }

    fn put(&mut self, base: u64, offset: u16, word: u64) {
        self.write(base + u64::from(offset), &word.to_le_bytes());
    }
}

impl Memory for Made {
    fn word(&mut self, address: u64) -> Option<u64> {
        assert_eq!(address % 8, 0);
        let byte = |at| self.0.get(&(address + at)).copied().unwrap_or(0);
        let bytes = [0, 1, 2, 3, 4, 5, 6, 7].map(byte);
        (address >= 4096).then(|| u64::from_le_bytes(bytes))
    }
}

fn frame_at(index: u64) -> u64 {
    FRAMES + index * 0x100
}

/// Returns the memory of a thread with `frames` frames of one activation, and the frame that ends
/// the activation.
fn thread(layout: &Layout, frames: u64) -> Made {
    let mut made = Made::default();
    made.put(RUNTIME, layout.runtime_tss_key, 1 | 5 << 32);
    made.put(SELF + 0x310, 5 * 16 + 8, THREAD);
    made.put(THREAD, layout.thread_id, SELF);
    if layout.thread_cframe != 0 {
        made.put(THREAD, layout.thread_cframe, CFRAME);
        made.put(CFRAME, layout.cframe_current_frame, frame_at(0));
    }
    if layout.thread_frame != 0 {
        made.put(THREAD, layout.thread_frame, frame_at(0));
    }
    for index in 0..frames {
        let frame = frame_at(index);
        let previous = if index + 1 < frames {
            frame_at(index + 1)
        } else {
            0
        };
        let cframe = CFRAME + index * 0x20;
        if layout.anchoring == Anchoring::EveryFrame {
            made.put(cframe, layout.cframe_previous, cframe + 0x20);
        }
        made.put(frame, layout.frame_previous, previous);
        made.put(
            frame,
            layout.frame_code,
            CODE | u64::from(layout.frame_code_tag & 1),
        );
        let instruction = match layout.instruction_unit {
            0 => CODE + u64::from(layout.code_instructions) + 10,
            unit => 10 / u64::from(unit),
        };
        made.put(frame, layout.frame_instruction, instruction);
        // `walk` must not read beyond the fields of a frame.
        made.write(frame + u64::from(layout.frame_bytes), &[0xff; 8]);
    }
    if layout.anchoring == Anchoring::EntryFrames {
        made.write(
            frame_at(frames - 1) + u64::from(layout.frame_is_entry),
            &[1],
        );
    }
    if layout.anchoring == Anchoring::BoundaryFrames {
        let last = frame_at(frames - 1);
        made.write(last + u64::from(layout.frame_owner), &[3]);
        made.put(last, layout.frame_code, 0);
    }
    made.put(CODE, layout.code_filename, 17);
    made.put(CODE, layout.code_qualname, 18);
    let line = layout.code_first_line;
    made.write(CODE + u64::from(line), &19_u32.to_le_bytes());
    made
}

fn chain(layout: &Layout, mut memory: impl Memory) -> Chain {
    walk(&mut memory, layout, RUNTIME, SELF, 100)
}

#[test]
fn frames_of_every_version_are_read() {
    for layout in LAYOUTS {
        let frame = Link::Frame(Frame {
            code: CODE,
            instruction: 10,
            checksum: checksum(17, 18, 19),
            machine_code: 0,
        });
        let expected = match layout.anchoring {
            Anchoring::Nothing => vec![frame; 3],
            Anchoring::EveryFrame => [0, 0x20, 0x40]
                .into_iter()
                .flat_map(|at| [frame, Link::Anchor(CFRAME + at)])
                .collect(),
            Anchoring::EntryFrames => vec![frame, frame, frame, Link::Anchor(CFRAME)],
            Anchoring::BoundaryFrames => vec![frame, frame, Link::Anchor(frame_at(2))],
        };
        let found = chain(layout, thread(layout, 3));
        assert_eq!(found.end, End::Whole, "3.{}", layout.minor);
        assert_eq!(found.links, expected, "3.{}", layout.minor);
    }
}

#[test]
fn what_no_interpreter_leaves_is_broken() {
    for layout in LAYOUTS {
        let first = frame_at(0);
        let has_owner = layout.anchoring == Anchoring::BoundaryFrames;
        let (code, instruction) = (layout.frame_code, layout.frame_instruction);
        let end = |change: &dyn Fn(&mut Made)| {
            let mut made = thread(layout, 3);
            change(&mut made);
            let found = chain(layout, made);
            (found.end, found.links.len())
        };
        let minor = layout.minor;
        let broken = (End::Broken, 0);
        assert_eq!(end(&|made| made.put(first, code, 0)), broken, "3.{minor}");
        assert_eq!(end(&|made| made.put(first, code, CODE | 4)), broken);
        let far = u64::MAX / 3;
        assert_eq!(end(&|made| made.put(first, instruction, far)), broken);
        if has_owner {
            let owner = first + u64::from(layout.frame_owner);
            assert_eq!(end(&|made| made.write(owner, &[5])), broken);
            assert_eq!(end(&|made| made.write(owner, &[0xff])), broken);
        }
        let previous = layout.frame_previous;
        let (found, _) = end(&|made| made.put(first, previous, frame_at(1) + 4));
        assert_eq!(found, End::Broken);
        // The first chain is a ring. The second one has a pointer to unreadable memory.
        let ring = end(&|made| made.put(frame_at(1), previous, first));
        if minor != 10 {
            assert_eq!(ring, (End::TooDeep, 100), "3.{minor}");
        }
        let (found, _) = end(&|made| made.put(first, previous, 8));
        assert_eq!(found, End::ReadFailed);
    }
}

#[test]
fn a_thread_that_is_not_the_interpreters_has_no_frames() {
    for layout in LAYOUTS {
        let whole = thread(layout, 3);
        let end = |change: &dyn Fn(&mut Made)| {
            let mut made = whole.clone();
            change(&mut made);
            let found = chain(layout, made);
            assert!(found.links.is_empty());
            found.end
        };
        let key = layout.runtime_tss_key;
        for other in [
            // The key does not exist yet, or its number is too large, or it has no value.
            5 << 32,
            1 | 1024 << 32,
            1 | u64::from(u32::MAX) << 32,
            1 | 6 << 32,
            1 | 64 << 32,
        ] {
            assert_eq!(end(&|made| made.put(RUNTIME, key, other)), End::NoThread);
        }
        // Words after the value of the last key are not values.
        let behind = |made: &mut Made| {
            made.put(RUNTIME, key, 1 | 1024 << 32);
            made.put(SELF + 0x610, 0, SELF + 0x800);
            made.put(SELF + 0x800, 8, THREAD);
        };
        assert_eq!(end(&behind), End::NoThread);
        let nowhere = walk(&mut whole.clone(), layout, RUNTIME, 0, 100);
        assert_eq!(nowhere.end, End::NoThread);
        let id = layout.thread_id;
        assert_eq!(end(&|made| made.put(THREAD, id, SELF + 8)), End::NoThread);
        let none = |made: &mut Made| made.put(SELF + 0x310, 88, 0);
        assert_eq!(end(&none), End::NoThread);
        // The thread has not called anything. In 3.12, a frame of its own shows this.
        let frame = layout.thread_frame;
        if frame != 0 {
            assert_eq!(end(&|made| made.put(THREAD, frame, 0)), End::Whole);
        }
    }
}

#[test]
fn values_of_keys_are_where_the_c_library_has_them() {
    let layout = &LAYOUTS[0];
    let mut thread = vec![0_u64; 64];
    // SAFETY: the function has no arguments.
    let pointer = unsafe { libc::pthread_self() };
    thread[usize::from(layout.thread_id) / 8] = pointer;
    let mut keys = Vec::new();
    for _ in 0..150 {
        let mut key = 0;
        // SAFETY: the function writes to `key`, and there is no destructor.
        assert_eq!(unsafe { libc::pthread_key_create(&mut key, None) }, 0);
        keys.push(key);
    }
    let mut tried = 0;
    for &key in &keys {
        let mut runtime = vec![0_u64; 200];
        runtime[usize::from(layout.runtime_tss_key) / 8] = 1 | u64::from(key) << 32;
        let find = || {
            let mut memory = ProcessMemory::new(std::process::id());
            walk(&mut memory, layout, runtime.as_ptr() as u64, pointer, 9).end
        };
        let before = find();
        // SAFETY: the key was created above, and only this test uses its value.
        unsafe { libc::pthread_setspecific(key, thread.as_ptr().cast()) };
        assert_eq!((before, find()), (End::NoThread, End::Whole), "{key}");
        // SAFETY: as above.
        unsafe { libc::pthread_setspecific(key, std::ptr::null()) };
        tried += usize::from(key >= 32);
    }
    assert!(tried > 100);
    for key in keys {
        // SAFETY: the key was created above.
        unsafe { libc::pthread_key_delete(key) };
    }
}

/// Memory with random values everywhere. Most values are addresses in this memory.
struct Wild(tamper::Random);

impl Memory for Wild {
    fn word(&mut self, address: u64) -> Option<u64> {
        let any = self.0.next_u64();
        match any % 64 {
            0 => None,
            1..4 => Some(any),
            4..8 => Some(any >> 56),
            8..40 => Some(address.wrapping_add((any % 4096) & !7)),
            _ => Some(SELF),
        }
    }
}

#[test]
fn memory_that_has_anything_does_no_harm() {
    let mut ends = HashMap::new();
    for seed in 1..40_000 {
        for layout in LAYOUTS {
            let mut memory = Wild(tamper::Random::new(seed));
            let work = || walk(&mut memory, layout, RUNTIME, SELF, 200);
            let (chain, cost) = tamper::cost(work);
            assert!(chain.links.len() <= 200);
            assert!(cost.time < Duration::from_secs(1));
            *ends.entry(chain.end).or_insert(0) += 1;
        }
    }
    assert!(ends.len() >= 3, "{ends:?}");
}

proptest! {
    #[test]
    fn tampered_threads_do_no_harm(
        index in 0..LAYOUTS.len(),
        changes in prop::collection::vec((0..0x1000_u64, any::<u64>()), 1..8),
        bases in prop::collection::vec(0..6_usize, 8),
    ) {
        let layout = &LAYOUTS[index];
        let mut made = thread(layout, 5);
        for ((at, word), base) in changes.into_iter().zip(bases) {
            let base = [RUNTIME, SELF, THREAD, CFRAME, FRAMES, CODE][base];
            made.put(base, (at & !7) as u16, word);
        }
        let found = chain(layout, made);
        prop_assert!(found.links.len() <= 100);
    }
}
