//! Unwinds made-up stacks in BPF and in Rust. Both find the same frames, also if the cache has
//! the stack or a stack that differs by a word. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod made_up;

use std::cell::RefCell;
use std::collections::HashMap;
use std::mem::MaybeUninit;

use bpf::types::{STACK_DEPTH, WalkEnd};
use checks::offwaketime::OffwaketimeSkelBuilder;
use checks::{load, run};
use libbpf_rs::{MapCore, MapFlags, RingBufferBuilder};
use process::ProcessMemory;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use unwind::{End, Mode, Registers, walk};

use made_up::{
    BARE, CODE, FUNCTION, Found, PROCESSES, STACK_POINTER, Stack, WORDS, as_the_kernel_has_them,
    found, make_room, process, put_process, put_tables, rules, spaces,
};

/// Value of a register or of a word of the stack.
#[derive(Clone, Copy, Debug)]
enum Word {
    /// An address in a function.
    Code(u8, u8),
    /// An address in code without tables.
    Bare(u8),
    /// The address of a word of the stack.
    Slot(u8),
    Zero,
    /// An address at which there is no memory.
    Junk,
}

impl Word {
    fn value(self, stack: &Stack) -> u64 {
        match self {
            Word::Code(function, offset) => {
                let function = u64::from(function) % rules().len() as u64;
                CODE + function * FUNCTION + u64::from(offset)
            }
            Word::Bare(offset) => BARE + 0x100 + u64::from(offset),
            Word::Slot(slot) => stack.address(usize::from(slot) % WORDS),
            Word::Zero => 0,
            Word::Junk => 0x5555_0000,
        }
    }
}

fn word() -> impl Strategy<Value = Word> {
    prop_oneof![
        12 => (any::<u8>(), any::<u8>()).prop_map(|(function, offset)| Word::Code(function, offset)),
        2 => any::<u8>().prop_map(Word::Bare),
        6 => any::<u8>().prop_map(Word::Slot),
        2 => Just(Word::Zero),
        1 => Just(Word::Junk),
    ]
}

/// Change before the next unwind.
#[derive(Clone, Copy, Debug)]
enum Change {
    Nothing,
    Word(usize, Word),
    /// A register by its DWARF number. The stack pointer stays within the stack.
    Register(usize, Word),
    Leaf(u8, u8),
    /// True if the leaf was interrupted, false if it called the kernel.
    Interrupted(bool),
    /// The stack is that of another process, which has the same memory.
    Process(u32),
    /// The process gets one of the two address spaces.
    Space(usize),
    /// User space no longer has the stack that the last unwind found.
    PushedOut,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        2 => Just(Change::Nothing),
        6 => (0..WORDS, word()).prop_map(|(index, word)| Change::Word(index, word)),
        3 => (0..16_usize, word()).prop_map(|(number, word)| Change::Register(number, word)),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(function, offset)| Change::Leaf(function, offset)),
        1 => any::<bool>().prop_map(Change::Interrupted),
        3 => (0..PROCESSES).prop_map(Change::Process),
        1 => (0..2_usize).prop_map(Change::Space),
        1 => Just(Change::PushedOut),
    ]
}

#[derive(Clone, Debug)]
struct Case {
    words: Vec<Word>,
    registers: Vec<Word>,
    leaf: (u8, u8),
    changes: Vec<Change>,
}

fn case() -> impl Strategy<Value = Case> {
    (
        vec(word(), WORDS),
        vec(word(), 16),
        any::<(u8, u8)>(),
        vec(change(), 30),
    )
        .prop_map(|(words, registers, leaf, changes)| Case {
            words,
            registers,
            leaf,
            changes,
        })
}

fn number(end: End) -> u32 {
    let number = match end {
        End::Root => WalkEnd::WALK_REACHED_ROOT,
        End::NoMapping => WalkEnd::WALK_NO_MAPPING,
        End::ReadFailed => WalkEnd::WALK_READ_FAILED,
        End::TooDeep => WalkEnd::WALK_TOO_DEEP,
        End::NoRule => WalkEnd::WALK_NO_RULE,
        End::Code32Bit => WalkEnd::WALK_32_BIT,
    };
    number.0
}

/// Numbers of unwinds, of unwinds that reached the root, and of cache hits.
#[derive(Debug, Default)]
struct Counts {
    walks: u64,
    roots: u64,
    cached: u64,
}

/// Unwinds many stacks in BPF, and compares each with an unwind in Rust. Most stacks differ from
/// the stack before by one word.
fn walk_many(cases: u32, check_cache_hit: bool) -> Counts {
    let mut object = MaybeUninit::uninit();
    let mut parts = load(OffwaketimeSkelBuilder::default(), &mut object, |open| {
        make_room(open);
        open.maps
            .rodata_data
            .as_deref_mut()
            .unwrap()
            .dump_every_stack = check_cache_hit;
    });
    let maps = &mut parts.maps;
    put_tables(
        &maps.unwind_rules,
        &maps.unwind_shards,
        &maps.unwind_pages,
        &maps.unwind_mappings,
    );
    let sent: RefCell<HashMap<u64, Found>> = RefCell::default();
    let mut ring = RingBufferBuilder::new();
    ring.add(&maps.events, |message| {
        sent.borrow_mut().extend(found(message));
        0
    })
    .unwrap();
    let ring = ring.build().unwrap();
    let shared = RefCell::new(maps.bss_data.as_deref_mut().unwrap());
    let mut stack = Stack::new();
    let stack = RefCell::new(&mut stack);
    let spaces = spaces();
    let counts = RefCell::new(Counts::default());
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..Config::default()
    };
    let checked = TestRunner::new(config).run(&case(), |case| {
        let mut stack = stack.borrow_mut();
        for (index, word) in case.words.iter().enumerate() {
            let value = word.value(&stack);
            stack.set(index, value);
        }
        let mut registers =
            Registers::new(Word::Code(case.leaf.0, case.leaf.1).value(&stack), 0, 0);
        for (register, word) in registers.general.iter_mut().zip(&case.registers) {
            *register = word.value(&stack);
        }
        registers.general[STACK_POINTER] = stack.address(8);
        let (mut exact, mut number_of, mut space, mut last) = (false, 0, 0, 0_u64);
        let mut memory = ProcessMemory::new(std::process::id());
        for change in &case.changes {
            match *change {
                Change::Nothing => {}
                Change::Word(index, word) => {
                    let value = word.value(&stack);
                    stack.set(index, value);
                }
                Change::Register(STACK_POINTER, word) => {
                    let slot = if let Word::Slot(slot) = word { slot } else { 8 };
                    registers.general[STACK_POINTER] = stack.address(usize::from(slot) % WORDS);
                }
                Change::Register(number, word) => registers.general[number] = word.value(&stack),
                Change::Leaf(function, offset) => {
                    registers.instruction_pointer = Word::Code(function, offset).value(&stack);
                }
                Change::Interrupted(interrupted) => exact = interrupted,
                Change::Process(other) => number_of = other,
                Change::Space(other) => space = other,
                Change::PushedOut => {
                    let slot = (last as u32 & 0xffff).to_ne_bytes();
                    let other = (!last).to_ne_bytes();
                    maps.seen_stacks
                        .update(&slot, &other, MapFlags::ANY)
                        .unwrap();
                    sent.borrow_mut().remove(&last);
                }
            }
            let (pid, instance) = process(number_of);
            put_process(&maps.unwind_processes, pid, instance, space);
            {
                let mut shared = shared.borrow_mut();
                shared.walk_pid = pid;
                shared.walk_instance = instance;
                shared.walk_is_exact = exact.into();
                shared.walk_registers = as_the_kernel_has_them(&registers);
            }
            run(&parts.progs.walk_stack);
            ring.consume().unwrap();
            last = shared.borrow().walk_found;

            memory.forget();
            let expected = walk(
                registers,
                exact,
                Mode::Auto,
                &spaces[space],
                &mut memory,
                STACK_DEPTH,
            );
            let by_frame_pointer =
                u32::from(expected.by_frame_pointer) * WalkEnd::WALK_BY_FRAME_POINTER.0;
            let mut counts = counts.borrow_mut();
            counts.walks += 1;
            counts.roots += u64::from(expected.end == End::Root);
            let expected = Found {
                instance,
                end: number(expected.end) | by_frame_pointer,
                addresses: expected.addresses,
            };
            let sent = sent.borrow();
            prop_assert_eq!(
                sent.get(&last),
                Some(&expected),
                "after {:?}: {:x?}",
                change,
                expected
            );
        }
        Ok(())
    });
    drop(ring);
    let shared = shared.into_inner();
    assert_eq!(shared.cache_hits_wrong, 0);
    assert_eq!(checked.map_err(|error| error.to_string()), Ok(()));
    Counts {
        cached: shared.cache_hits_right,
        ..counts.into_inner()
    }
}

#[test]
fn walks_in_bpf_and_in_rust_agree() {
    let counts = walk_many(1500, false);
    println!("{counts:?}");
    assert!(counts.roots * 10 > counts.walks, "{counts:?}");
}

#[test]
fn many_of_them_are_in_the_cache() {
    let counts = walk_many(400, true);
    println!("{counts:?}");
    assert!(counts.cached * 30 > counts.walks, "{counts:?}");
}
