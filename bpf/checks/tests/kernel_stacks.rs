//! Tests the cache of kernel stacks with made-up stacks. A hit is always the right stack, with
//! any stale words between its return addresses. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::mem::MaybeUninit;

use checks::offwaketime::{OffwaketimeSkel, OffwaketimeSkelBuilder};
use checks::{load, run};
use libbpf_rs::OpenObject;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};

/// Addresses of the first function, of the scheduler's first function, and in the entry code.
const CODE: u64 = 0xffff_ffff_8100_0000;
const SCHEDULER: u64 = 0xffff_ffff_8200_0000;
const ENTRY: u64 = 0xffff_ffff_8080_0076;
/// Distances between functions.
const FUNCTION: u64 = 0x1010;
const SCHEDULER_FUNCTION: u64 = 0x410;
/// Address in `__schedule()`, the first return address of all, and the words of its frame.
const SCHEDULE: u64 = SCHEDULER + 0x3d4;
const SCHEDULE_WORDS: usize = 5;
/// Index of the word with this address, behind the registers that a switch saves.
const FIRST: usize = 6;

/// Words of `struct pt_regs` up to the ip, and the indexes of the system call's number and of
/// the ip.
const REGISTERS: usize = 17;
const SYSTEM_CALL: usize = 15;
const IP: usize = 16;
/// Distances in words from a saved ip to the saved code segment, stack pointer and stack
/// segment.
const CS: usize = 1;
const SP: usize = 3;
const SS: usize = 4;

/// Call, which determines the size of the caller's frame.
#[derive(Clone, Copy, Debug)]
enum Call {
    /// Call from a place in a function.
    Function(u8, u8),
    /// Call from a function that the helper leaves out.
    Scheduler(u8, u8),
    /// Interrupt at a place in a function. The function's frame lies behind the saved registers.
    Interrupted(u8, u8),
}

impl Call {
    fn take_place(&mut self, other: u8) {
        let (Call::Function(_, place) | Call::Scheduler(_, place) | Call::Interrupted(_, place)) =
            self;
        *place = other;
    }

    fn address(self) -> u64 {
        match self {
            Call::Function(function, place) | Call::Interrupted(function, place) => {
                CODE + u64::from(function % 8) * FUNCTION + u64::from(place % 3) * 8
            }
            Call::Scheduler(function, place) => {
                SCHEDULER + u64::from(function % 4) * SCHEDULER_FUNCTION + u64::from(place % 2) * 8
            }
        }
    }

    /// Returns the words of the calling function's frame, the return address included.
    fn words(self) -> usize {
        match self {
            Call::Function(function, _) | Call::Interrupted(function, _) => {
                usize::from(function % 8) / 2 * 3 + 1
            }
            Call::Scheduler(function, _) => usize::from(function % 4) / 2 * 3 + 2,
        }
    }
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        12 => any::<(u8, u8)>().prop_map(|(function, place)| Call::Function(function, place)),
        4 => any::<(u8, u8)>().prop_map(|(function, place)| Call::Scheduler(function, place)),
        1 => any::<(u8, u8)>().prop_map(|(function, place)| Call::Interrupted(function, place)),
    ]
}

/// Call path: the calls, innermost first, and the number of their system call.
type Way = (Vec<Call>, u64);

/// Use of a call path, or of a similar call path.
#[derive(Clone, Debug)]
struct Taken {
    way: Index,
    /// In some uses: which call has another place in its function, and this place.
    place: Option<(Index, u8)>,
    /// Which of two places in the entry code, 0 or 1.
    entry: u64,
    /// Random offset at a system call, in words.
    offset: usize,
}

fn taken() -> impl Strategy<Value = Taken> {
    let place = proptest::option::weighted(0.2, any::<(Index, u8)>());
    let entry = prop_oneof![9 => Just(0), 1 => Just(1)];
    (any::<Index>(), place, entry, 0..24_usize).prop_map(|(way, place, entry, offset)| Taken {
        way,
        place,
        entry,
        offset,
    })
}

impl Taken {
    fn way(&self, ways: &[Way]) -> Way {
        let (mut calls, number) = self.way.get(ways).clone();
        if let Some((call, place)) = &self.place {
            call.get_mut(&mut calls).take_place(*place);
        }
        (calls, number)
    }
}

/// Call paths, and their uses.
#[derive(Clone, Debug)]
struct Case {
    ways: Vec<Way>,
    taken: Vec<Taken>,
}

fn case() -> impl Strategy<Value = Case> {
    let ways = vec((vec(call(), 1..6), 0..2_u64), 1..8);
    (ways, vec(taken(), 120)).prop_map(|(ways, taken)| Case { ways, taken })
}

/// Stack of a waiting thread, over the words that other stacks have left.
struct Waiting {
    /// Frames that the helper returns.
    frames: Vec<u64>,
    words: usize,
    is_interrupted: bool,
}

fn wait(memory: &mut [u64], (calls, number): Way, entry: u64, offset: usize) -> Waiting {
    let mut frames = Vec::new();
    let mut is_interrupted = false;
    memory[FIRST] = SCHEDULE;
    let mut at = FIRST + SCHEDULE_WORDS;
    for call in calls {
        if let Call::Interrupted(..) = call {
            is_interrupted = true;
            // Address in the code that saves registers. No call precedes it.
            memory[at] = ENTRY + 0x40;
            frames.push(ENTRY + 0x40);
            at += 1 + IP;
            memory[at + CS] = 0x10;
            memory[at + SP] = offset as u64;
            memory[at + SS] = 0x18;
            memory[at] = call.address();
            frames.push(call.address());
            at += SS + offset % 2;
        } else {
            memory[at] = call.address();
            if let Call::Function(..) = call {
                frames.push(call.address());
            }
        }
        at += call.words();
    }
    // The function that the entry code calls has a frame of random size.
    let called = CODE + 8 * FUNCTION;
    memory[at] = called;
    at += 2 + offset;
    memory[at] = ENTRY + 0x100 * entry;
    frames.extend([called, memory[at]]);
    memory[at + 1 + SYSTEM_CALL] = number;
    memory[at + 1 + IP] = 0x40_0000;
    Waiting {
        frames,
        words: at + 1,
        is_interrupted,
    }
}

/// Returns the cached ID of a stack. If there is none, returns 0 and caches the stack as `id`.
fn look_up(parts: &mut OffwaketimeSkel<'_>, memory: &[u64], waiting: &Waiting, id: u64) -> u64 {
    let shared = parts.maps.bss_data.as_deref_mut().unwrap();
    shared.kernel_stack.copy_from_slice(memory);
    shared.kernel_stack_words = waiting.words as u64;
    shared.kernel_frames[..waiting.frames.len()].copy_from_slice(&waiting.frames);
    shared.kernel_depth = waiting.frames.len() as u32;
    run(&parts.progs.look_up_stack);
    let shared = parts.maps.bss_data.as_deref_mut().unwrap();
    let found = shared.kernel_stack_id;
    if found == 0 {
        shared.kernel_stack_id = id;
        run(&parts.progs.cache_stack);
    }
    found
}

fn parts(object: &mut MaybeUninit<OpenObject>) -> OffwaketimeSkel<'_> {
    load(OffwaketimeSkelBuilder::default(), object, |_| ())
}

#[test]
fn what_is_cached_is_the_stack() {
    let mut object = MaybeUninit::uninit();
    let parts = RefCell::new(parts(&mut object));
    let memory = RefCell::new([0; 512 + REGISTERS]);
    let ids: RefCell<HashMap<Vec<u64>, u64>> = RefCell::default();
    let counts = Cell::new((0, 0));
    let config = Config {
        cases: 300,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    let checked = TestRunner::new(config).run(&case(), |case| {
        let (mut parts, mut memory) = (parts.borrow_mut(), memory.borrow_mut());
        let mut ids = ids.borrow_mut();
        for taken in &case.taken {
            let way = taken.way(&case.ways);
            let waiting = wait(&mut memory[..], way, taken.entry, taken.offset);
            let next = ids.len() as u64 + 2;
            let id = *ids.entry(waiting.frames.clone()).or_insert(next);
            let found = look_up(&mut parts, &memory[..], &waiting, id);
            let (hits, waits) = counts.get();
            counts.set((hits + u32::from(found != 0), waits + 1));
            if found != 0 {
                prop_assert_eq!(found, id, "{:x?}", waiting.frames);
                prop_assert!(!waiting.is_interrupted);
            }
        }
        Ok(())
    });
    let (hits, waits) = counts.get();
    println!("{hits} of {waits} were cached");
    assert_eq!(checked.map_err(|error| error.to_string()), Ok(()));
    assert!(hits * 4 > waits, "{hits} of {waits} were cached");
}

/// A kernel probe at the return of a function replaces the return address by its own. The helper
/// still returns the original address.
#[test]
fn a_stack_with_another_address_in_a_return_addresss_place_is_not_cached() {
    let mut object = MaybeUninit::uninit();
    let mut parts = parts(&mut object);
    let mut memory = [0; 512 + REGISTERS];
    let calls = [0, 2, 4].map(|function| Call::Function(function, 0));
    let waiting = wait(&mut memory, (calls.to_vec(), 0), 0, 3);
    let is_second = |&word: &u64| word == calls[1].address();
    let probed = memory.iter().position(is_second).unwrap();
    memory[probed] = CODE - FUNCTION;
    assert_eq!(look_up(&mut parts, &memory, &waiting, 2), 0);
    assert_eq!(look_up(&mut parts, &memory, &waiting, 2), 0);
    // Without the probe the stack is cached.
    memory[probed] = calls[1].address();
    assert_eq!(look_up(&mut parts, &memory, &waiting, 2), 0);
    assert_eq!(look_up(&mut parts, &memory, &waiting, 2), 2);
}
