//! Made-up processes: code that exists nowhere, its tables, and a page of stack.

use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use bpf::types::{EventKind, SHARD_ROWS, StackEvent, UnwindMapping, UnwindPage, UnwindProcess};
use checks::offwaketime::OpenOffwaketimeSkel;
use checks::offwaketime::types::unwind_rule;
use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapMut, MapType};
use rustix::mm::{MapFlags as Share, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
use unwind::{AddressSpace, Code, PAGE_SIZE, Page, Registers, Rule, Table, cfa, frame_pointer};

/// Code with tables, of functions that are [`FUNCTION`] bytes long, followed by as much code
/// without tables.
pub(crate) const CODE: u64 = 0x10000;
pub(crate) const BARE: u64 = CODE + PAGE_SIZE;
const END: u64 = BARE + PAGE_SIZE;
pub(crate) const FUNCTION: u64 = 0x100;

/// Number of processes, whose PIDs begin at [`FIRST_PID`].
pub(crate) const PROCESSES: u32 = 64;
const FIRST_PID: u32 = 1 << 23;

/// Number of words of made-up stack, at the end of a page.
pub(crate) const WORDS: usize = 96;
const PAGE: usize = 4096;

/// Returns rules of each kind, with common rules several times.
pub(crate) fn rules() -> Vec<Rule> {
    let sp = |offset| Rule::at(cfa::STACK_POINTER, offset);
    let saves = |rule: Rule, frame_pointer, frame_pointer_offset| Rule {
        frame_pointer,
        frame_pointer_offset,
        ..rule
    };
    let fp = Rule::at(cfa::FRAME_POINTER, 16);
    let pushes = |rule| saves(rule, frame_pointer::AT_CFA, -16);
    vec![
        Rule::ROOT,
        sp(16),
        pushes(sp(16)),
        pushes(sp(32)),
        pushes(fp),
        sp(24),
        sp(8),
        pushes(fp),
        // The frame pointer is not beside the return address, so the two words take two reads.
        saves(sp(32), frame_pointer::AT_CFA, -24),
        // The saved frame pointer is below the stack pointer: the function has popped it.
        saves(sp(8), frame_pointer::AT_CFA, -16),
        saves(sp(16), frame_pointer::LOST, 0),
        saves(sp(24), frame_pointer::AT_FRAME_POINTER, 8),
        Rule::at(cfa::WORD_AT_STACK_POINTER, Rule::with_halves(8, 8)),
        Rule::at(cfa::WORD_AT_FRAME_POINTER, Rule::with_halves(-8, 16)),
        Rule::at(cfa::PLT, 11),
        Rule::at(cfa::SIGNAL_FRAME, 8),
        pushes(Rule::at(cfa::SWITCHED_STACK, 16)),
        Rule::at(cfa::REGISTER + 10, 16),
        Rule::at(cfa::RETURN_IN_REGISTER + 5, 0),
        Rule::at(cfa::HANDED_OVER, 0),
        Rule::at(cfa::CLONED, 16),
        Rule::NONE,
    ]
}

/// Address space of a process. There are two, which have the same functions in another order.
#[derive(Clone)]
pub(crate) struct Space(Table);

pub(crate) fn spaces() -> [Space; 2] {
    let rules = rules();
    let rows = |numbers: Vec<usize>| Table {
        base: CODE,
        pages: vec![Page {
            first: 0,
            count: numbers.len() as u32,
        }],
        rows: (0..)
            .zip(&numbers)
            .map(|(function, number)| (function * FUNCTION as u32) << 16 | *number as u32)
            .collect(),
        rules: rules.clone(),
    };
    let count = rules.len();
    [
        Space(rows((0..count).collect())),
        Space(rows((0..count).rev().collect())),
    ]
}

impl AddressSpace for Space {
    fn code(&self, address: u64) -> Code<'_> {
        match address {
            CODE..BARE => Code::Table {
                table: &self.0,
                address,
            },
            BARE..END => Code::Bare,
            _ => Code::Unmapped,
        }
    }
}

/// Sets the sizes of the maps for the tables of both spaces.
pub(crate) fn make_room(open: &mut OpenOffwaketimeSkel<'_>) {
    let maps = &mut open.maps;
    maps.unwind_pages.set_max_entries(2).unwrap();
    maps.unwind_mappings.set_max_entries(4).unwrap();
    maps.unwind_processes
        .set_max_entries(PROCESSES + 2)
        .unwrap();
}

fn put(map: &impl MapCore, key: u32, value: &[u8]) {
    map.update(&key.to_ne_bytes(), value, MapFlags::ANY)
        .unwrap();
}

/// Writes the tables of [`spaces`] to the maps.
pub(crate) fn put_tables(
    rules: &MapMut<'_>,
    shards: &MapMut<'_>,
    pages: &MapMut<'_>,
    mappings: &MapMut<'_>,
) {
    for (index, rule) in self::rules().into_iter().enumerate() {
        let rule = unwind_rule {
            cfa: rule.cfa,
            frame_pointer: rule.frame_pointer,
            frame_pointer_offset: rule.frame_pointer_offset,
            cfa_offset: rule.cfa_offset,
        };
        // SAFETY: repr(C), of 8 bytes without padding.
        let bytes = unsafe { std::mem::transmute::<unwind_rule, [u8; 8]>(rule) };
        put(rules, index as u32, &bytes);
    }
    let mut rows = Vec::new();
    for (index, Space(table)) in (0..).zip(spaces()) {
        let page = UnwindPage {
            shard: 0,
            count: table.rows.len() as u16,
            first: rows.len() as u32,
        };
        // SAFETY: plain old data.
        put(pages, index, unsafe { plain::as_bytes(&page) });
        rows.extend(table.rows);
        let with_table = UnwindMapping {
            start: CODE,
            end: BARE,
            bias: CODE,
            first_page: index,
            page_count: 1,
        };
        let without = UnwindMapping {
            start: BARE,
            end: END,
            bias: BARE,
            first_page: 0,
            page_count: 0,
        };
        for (nth, mapping) in (0..).zip([with_table, without]) {
            // SAFETY: plain old data.
            put(mappings, 2 * index + nth, unsafe {
                plain::as_bytes(&mapping)
            });
        }
    }
    rows.resize(SHARD_ROWS, 0);
    let bytes: Vec<u8> = rows.into_iter().flat_map(u32::to_ne_bytes).collect();
    let shard = shard();
    put(&shard, 0, &bytes);
    put(shards, 0, &shard.as_fd().as_raw_fd().to_ne_bytes());
}

fn shard() -> MapHandle {
    let options = bpf_map_create_opts {
        sz: size_of::<bpf_map_create_opts>() as _,
        map_flags: libbpf_rs::libbpf_sys::BPF_F_MMAPABLE,
        ..Default::default()
    };
    let size = (SHARD_ROWS * size_of::<u32>()) as u32;
    MapHandle::create(MapType::Array, Some("shard"), 4, size, 1, &options).unwrap()
}

/// Gives a process the code and tables of one of the spaces.
pub(crate) fn put_process(processes: &MapMut<'_>, pid: u32, instance: u64, space: usize) {
    let generation = instance * 2 + space as u64;
    let process = UnwindProcess::new(instance, 2 * space as u32, 2, generation);
    // SAFETY: plain old data.
    put(processes, pid, unsafe { plain::as_bytes(&process) });
}

/// Returns the PID and instance of a made-up process.
pub(crate) fn process(number: u32) -> (u32, u64) {
    (FIRST_PID + number, (1 << 40) + u64::from(number))
}

/// Page of stack between two pages that programs cannot read.
pub(crate) struct Stack(*mut u64);

impl Stack {
    pub(crate) fn new() -> Stack {
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let memory = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                3 * PAGE,
                ProtFlags::empty(),
                Share::PRIVATE,
            )
        };
        let page = memory.unwrap().wrapping_byte_add(PAGE);
        // SAFETY: a page of that mapping.
        unsafe { mprotect(page, PAGE, MprotectFlags::READ | MprotectFlags::WRITE) }.unwrap();
        let words = page
            .wrapping_byte_add(PAGE)
            .cast::<u64>()
            .wrapping_sub(WORDS);
        Stack(words)
    }

    /// Returns the address of a word.
    pub(crate) fn address(&self, index: usize) -> u64 {
        assert!(index < WORDS);
        self.0.wrapping_add(index) as u64
    }

    pub(crate) fn set(&mut self, index: usize, word: u64) {
        assert!(index < WORDS);
        // SAFETY: within the page that was made writable.
        unsafe { self.0.wrapping_add(index).write_volatile(word) }
    }
}

/// Stack from a message of the programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) instance: u64,
    pub(crate) end: u32,
    pub(crate) addresses: Vec<u64>,
}

/// Returns the stack in a message, with its ID.
pub(crate) fn found(message: &[u8]) -> Option<(u64, Found)> {
    // A message has only the frames in use.
    let mut whole = message.to_vec();
    whole.resize(size_of::<StackEvent>(), 0);
    let mut event = StackEvent::default();
    plain::copy_from_bytes(&mut event, &whole).ok()?;
    let found = Found {
        instance: event.instance,
        end: event.walk_end,
        addresses: event
            .frames
            .into_iter()
            .take(event.depth as usize)
            .collect(),
    };
    (event.kind == EventKind::EVENT_STACK.0).then_some((event.hash, found))
}

/// DWARF number of rsp.
pub(crate) const STACK_POINTER: usize = 7;

/// Converts registers to `struct pt_regs`: see `bpf/include/arch/x86_64/registers.h`.
pub(crate) fn as_the_kernel_has_them(registers: &Registers) -> [u64; 21] {
    // DWARF numbers of r15 to di.
    const IN_ORDER: [usize; 15] = [15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5];
    let mut words = [0; 21];
    for (word, number) in words.iter_mut().zip(IN_ORDER) {
        *word = registers.general[number];
    }
    words[16] = registers.instruction_pointer;
    words[19] = registers.general[STACK_POINTER];
    words
}
