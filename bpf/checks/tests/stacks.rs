//! Tests when programs send a stack's frames, and which process's tables unwind the stack. Needs
//! root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod made_up;

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::ptr;

use bpf::types::{EventKind, STACK_MISSED, STACK_NONE};
use checks::offwaketime::{OffwaketimeSkel, OffwaketimeSkelBuilder};
use checks::{load, run};
use libbpf_rs::{MapCore, MapFlags, OpenObject, RingBufferBuilder};
use rustix::mm::{MapFlags as Share, ProtFlags, mmap_anonymous};
use unwind::{Registers, cfa};

use made_up::{
    CODE, FUNCTION, Found, STACK_POINTER, Stack, WORDS, as_the_kernel_has_them, found, make_room,
    process, put_process, put_tables, rules,
};

/// Messages from the programs, in order.
#[derive(Default)]
struct Sent {
    stacks: Vec<(u64, Found)>,
    code_changes: usize,
}

/// Returns an address in a function whose rule passes a test.
fn function(wanted: impl Fn(&unwind::Rule) -> bool) -> u64 {
    let index = rules().iter().position(wanted).unwrap();
    CODE + index as u64 * FUNCTION + 0x20
}

/// The parts, with tables, and a stack of three functions.
struct Walker<'a> {
    parts: OffwaketimeSkel<'a>,
    stack: Stack,
}

/// Index of the word with the root's address.
const ROOT: usize = WORDS - 1;

impl Walker<'_> {
    fn new(object: &mut MaybeUninit<OpenObject>) -> Walker<'_> {
        let mut parts = load(OffwaketimeSkelBuilder::default(), object, make_room);
        put_tables(
            &parts.maps.unwind_rules,
            &parts.maps.unwind_shards,
            &parts.maps.unwind_pages,
            &parts.maps.unwind_mappings,
        );
        let mut stack = Stack::new();
        let by_16 = function(|rule| rule.cfa == cfa::STACK_POINTER && rule.cfa_offset == 16);
        let root = function(|rule| rule.cfa == cfa::ROOT);
        // The third word from the end is the leaf's return address. The last word is its
        // caller's.
        stack.set(WORDS - 3, by_16);
        stack.set(ROOT, root);
        let mut registers = Registers::new(
            function(|rule| rule.cfa == cfa::STACK_POINTER && rule.cfa_offset == 8),
            0,
            0,
        );
        registers.general[STACK_POINTER] = stack.address(WORDS - 3);
        let shared = parts.maps.bss_data.as_deref_mut().unwrap();
        shared.walk_registers = as_the_kernel_has_them(&registers);
        Walker { parts, stack }
    }

    /// Returns a walker for a made-up process with tables.
    fn of_a_process(object: &mut MaybeUninit<OpenObject>) -> Walker<'_> {
        let mut walker = Walker::new(object);
        let (pid, instance) = process(0);
        put_process(&walker.parts.maps.unwind_processes, pid, instance, 0);
        walker.set_process(pid, instance);
        walker
    }

    /// Sets the process of the stack: the PID of a made-up process, or 0 for this process.
    fn set_process(&mut self, pid: u32, instance: u64) {
        let shared = self.parts.maps.bss_data.as_deref_mut().unwrap();
        shared.walk_pid = pid;
        shared.walk_instance = instance;
    }

    fn set_interrupted(&mut self, interrupted: bool) {
        let shared = self.parts.maps.bss_data.as_deref_mut().unwrap();
        shared.walk_is_exact = interrupted.into();
    }

    /// Sets the process whose share pays for stacks.
    fn set_payer(&mut self, payer: u32) {
        self.parts.maps.bss_data.as_deref_mut().unwrap().walk_payer = payer;
    }

    /// Begins a turn. Every process then has its share again, as after a drain by user space.
    fn begin_turn(&mut self) {
        let shared = self.parts.maps.bss_data.as_deref_mut().unwrap();
        shared.events_turn += 2;
    }

    /// Unwinds stack number `turn` of many, and evicts it, so that the programs send it each
    /// time. Returns its ID.
    fn walk_another(&mut self, turn: u64) -> u64 {
        self.stack.set(ROOT, CODE + 1 + turn % (FUNCTION - 1));
        let id = self.walk();
        if id > STACK_MISSED {
            self.push_out(id);
        }
        id
    }

    fn lost_stacks(&self) -> u64 {
        let shared = self.parts.maps.bss_data.as_deref().unwrap();
        shared.lost.stack_frames
    }

    /// Unwinds the stack and returns its ID.
    fn walk(&self) -> u64 {
        run(&self.parts.progs.walk_stack);
        self.parts.maps.bss_data.as_deref().unwrap().walk_found
    }

    /// Returns the messages since the last call.
    fn sent(&self) -> Sent {
        let sent = RefCell::new(Sent::default());
        let mut ring = RingBufferBuilder::new();
        ring.add(&self.parts.maps.events, |message| {
            let mut sent = sent.borrow_mut();
            let kind = u32::from_ne_bytes(message[..4].try_into().unwrap());
            sent.code_changes += usize::from(kind == EventKind::EVENT_CODE_CHANGED.0);
            sent.stacks.extend(found(message));
            0
        })
        .unwrap();
        ring.build().unwrap().consume().unwrap();
        sent.into_inner()
    }

    /// Unwinds the stack. Returns its ID, and how many times the programs sent it.
    fn sends(&self) -> (u64, usize) {
        let (id, sent) = (self.walk(), self.sent());
        assert!(sent.stacks.iter().all(|(sent, _)| *sent == id));
        (id, sent.stacks.len())
    }

    /// Evicts a stack from the stacks that user space has.
    fn push_out(&self, id: u64) {
        let slot = (id as u32 & 0xffff).to_ne_bytes();
        let other = (!id).to_ne_bytes();
        let seen = &self.parts.maps.seen_stacks;
        seen.update(&slot, &other, MapFlags::ANY).unwrap();
    }
}

/// The rule holds for waiting threads, whose unwinds are cached, and for sampled threads.
#[test]
fn a_stack_is_sent_once_and_again_when_another_pushed_it_out() {
    let mut object = MaybeUninit::uninit();
    let mut walker = Walker::of_a_process(&mut object);
    for interrupted in [false, true] {
        walker.set_interrupted(interrupted);
        let (id, times) = walker.sends();
        assert_eq!(times, 1);
        assert_eq!(walker.sends(), (id, 0));
        walker.push_out(id);
        assert_eq!(walker.sends(), (id, 1));
        assert_eq!(walker.sends(), (id, 0));
    }
}

#[test]
#[ignore = "fills the table of stacks"]
fn a_stack_that_found_no_room_is_sent_when_next_seen() {
    let mut object = MaybeUninit::uninit();
    let mut walker = Walker::of_a_process(&mut object);
    // Each stack has another address in the root. The loop ends when the buffer is full.
    let mut turns = 1..;
    loop {
        walker.begin_turn();
        if walker.walk_another(turns.next().unwrap()) == STACK_MISSED {
            break;
        }
    }
    assert_eq!(walker.lost_stacks(), 1);
    let sent = walker.sent();
    assert!(sent.stacks.len() > 1000, "{}", sent.stacks.len());
    let (id, times) = walker.sends();
    assert!(id > STACK_MISSED && times == 1, "{id} {times}");
    assert_eq!(walker.sends(), (id, 0));
}

/// One process fills three quarters of the buffer, and other processes the rest.
#[test]
#[ignore = "fills the ring buffer"]
fn a_process_that_floods_the_ring_buffer_leaves_room_for_others() {
    let mut object = MaybeUninit::uninit();
    let mut walker = Walker::of_a_process(&mut object);
    walker.set_payer(1);
    let flood = (1..).find(|&turn| walker.walk_another(turn) == STACK_MISSED);
    assert_eq!(walker.lost_stacks(), 1);
    walker.set_payer(2);
    let others = flood.unwrap() / 6;
    for turn in 0..others {
        assert!(walker.walk_another(turn) > STACK_MISSED, "{turn}");
    }
    walker.set_payer(1);
    assert_eq!(walker.walk_another(1), STACK_MISSED);
    let sent = walker.sent().stacks.len() as u64;
    assert_eq!(sent, flood.unwrap() - 1 + others);
    // The program sends a refused stack when it sees the stack again.
    walker.begin_turn();
    let (id, times) = walker.sends();
    assert!(id > STACK_MISSED && times == 1, "{id} {times}");
}

#[test]
fn more_or_less_code_has_the_mappings_read_again() {
    let mut object = MaybeUninit::uninit();
    let walker = Walker::of_a_process(&mut object);
    let changes = || {
        let id = walker.walk();
        assert!(id > STACK_MISSED, "{id}");
        walker.sent().code_changes
    };
    // The number of code pages is new, then unchanged, then changed by map_code(), then
    // unchanged.
    assert_eq!(changes(), 0);
    assert_eq!(changes(), 0);
    map_code();
    assert_eq!(changes(), 1);
    assert_eq!(changes(), 0);
}

/// Gives this process more code, without the allocator.
fn map_code() {
    let access = ProtFlags::READ | ProtFlags::EXEC;
    // SAFETY: new memory, at an address that the kernel chooses.
    unsafe { mmap_anonymous(ptr::null_mut(), 4096, access, Share::PRIVATE) }.unwrap();
}

/// Returns the ID of this process's stack, and the ID of the same stack in a fork that has
/// called `before`.
fn stack_of_a_fork(before: impl Fn()) -> (u64, u64) {
    let mut object = MaybeUninit::uninit();
    let mut walker = Walker::new(&mut object);
    // The first unwind stores the instance of this process.
    walker.set_process(0, 0);
    assert_eq!(walker.walk(), STACK_NONE);
    let instance = walker.parts.maps.bss_data.as_deref().unwrap().walk_instance;
    put_process(
        &walker.parts.maps.unwind_processes,
        std::process::id(),
        instance,
        0,
    );
    let own = walker.walk();
    assert!(own > STACK_MISSED, "{own}");
    // SAFETY: the child only makes system calls, and ends.
    match unsafe { libc::fork() } {
        0 => {
            before();
            run(&walker.parts.progs.walk_stack);
            // SAFETY: the child ends at once.
            unsafe { libc::_exit(0) }
        }
        child => {
            assert!(child > 0);
            let mut status = 0;
            // SAFETY: a child of this process, and a place for its status.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0);
        }
    }
    (
        own,
        walker.parts.maps.bss_data.as_deref().unwrap().walk_found,
    )
}

#[test]
fn a_fork_is_walked_by_its_parents_tables() {
    let (own, forks) = stack_of_a_fork(|| ());
    assert_eq!(own, forks);
}

/// The fork maps more code. A fork that executes a program has other code, too.
#[test]
fn a_fork_with_other_code_is_not() {
    let (_, forks) = stack_of_a_fork(map_code);
    assert_eq!(forks, STACK_NONE);
}

#[test]
fn tables_are_those_of_one_program() {
    let mut object = MaybeUninit::uninit();
    let mut walker = Walker::of_a_process(&mut object);
    let (pid, instance) = process(0);
    walker.set_process(pid, instance + 1);
    assert_eq!(walker.walk(), STACK_NONE);
}
