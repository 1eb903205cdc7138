//! A process that lies: its tables are well-formed, and everything else is arbitrary.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::cell::Cell;

use unwind::{AddressSpace, Code, Memory, Mode, Registers, walk_through};

use super::layout::{self, Found, Machine};
use super::step::Walker;
use super::tables::Tables;
use super::{compiled, method};
use crate::chain::{End, Frame};
use crate::interleave::Link;
use crate::language::{CodeFrames, Pieces};

/// Fields of JDK 17 with their offsets, and static fields (`None`).
const FIELDS: [(&str, &str, Option<u64>); 42] = [
    ("Abstract_VM_Version", "_vm_major_version", None),
    ("Abstract_VM_Version", "_s_vm_release", None),
    ("AbstractInterpreter", "_code", None),
    ("CodeBlob", "_code_begin", Some(32)),
    ("CodeBlob", "_frame_size", Some(28)),
    ("CodeBlob", "_header_size", Some(16)),
    ("CodeBlob", "_name", Some(96)),
    ("CodeBlob", "_size", Some(12)),
    ("CodeCache", "_heaps", None),
    ("CodeHeap", "_log2_segment_size", Some(256)),
    ("CodeHeap", "_memory", Some(8)),
    ("CodeHeap", "_segmap", Some(120)),
    ("CompiledMethod", "_deopt_handler_begin", Some(128)),
    ("CompiledMethod", "_deopt_mh_handler_begin", Some(136)),
    ("CompiledMethod", "_method", Some(112)),
    ("CompiledMethod", "_scopes_data_begin", Some(120)),
    ("ConstMethod", "_code_size", Some(32)),
    ("ConstMethod", "_flags", Some(28)),
    ("ConstMethod", "_name_index", Some(34)),
    ("ConstantPool", "_length", Some(60)),
    ("ConstantPool", "_pool_holder", Some(24)),
    ("ConstantPool", "_source_file_name_index", Some(54)),
    ("GrowableArray<int>", "_data", Some(8)),
    ("GrowableArrayBase", "_len", Some(0)),
    ("HeapBlock::Header", "_used", Some(8)),
    ("InterpreterCodelet", "_description", Some(0)),
    ("InterpreterCodelet", "_size", Some(8)),
    ("Klass", "_name", Some(24)),
    ("StubQueue", "_number_of_stubs", Some(32)),
    ("StubQueue", "_stub_buffer", Some(8)),
    ("StubRoutines", "_call_stub_return_address", None),
    ("Symbol", "_body", Some(6)),
    ("Symbol", "_length", Some(4)),
    ("VirtualSpace", "_high_boundary", Some(8)),
    ("VirtualSpace", "_low", Some(16)),
    ("VirtualSpace", "_low_boundary", Some(0)),
    ("nmethod", "_compile_id", Some(304)),
    ("nmethod", "_dependencies_offset", Some(272)),
    ("nmethod", "_metadata_offset", Some(260)),
    ("nmethod", "_orig_pc_offset", Some(300)),
    ("nmethod", "_scopes_pcs_offset", Some(268)),
    ("nmethod", "_verified_entry_point", Some(224)),
];
const TYPES: [(&str, u64); 4] = [
    ("HeapBlock", 16),
    ("nmethod", 352),
    ("ConstMethod", 48),
    ("ConstantPool", 72),
];

/// Addresses of the variables, the tables and their texts.
const VARIABLES: u64 = 0x1000;
const FIELD_TABLE: u64 = 0x10_000;
const TYPE_TABLE: u64 = 0x20_000;
const TEXTS: u64 = 0x30_000;
/// Range in which most words point, so that reads lead somewhere.
const CODE: u64 = 0x7f00_0000_0000;
const CODE_BYTES: u64 = 1 << 20;

/// Memory of the process.
struct Lies {
    seed: u64,
    start: Vec<u8>,
    reads: Cell<u64>,
}

impl Lies {
    fn new(seed: u64) -> Lies {
        let mut memory = Lies {
            seed,
            start: vec![0; 0x40_000],
            reads: Cell::new(0),
        };
        memory.put(VARIABLES, FIELD_TABLE);
        memory.put(VARIABLES + 8, TYPE_TABLE);
        let mut end = TEXTS;
        let mut text = |memory: &mut Lies, text: &str| {
            let at = end as usize;
            memory.start[at..at + text.len()].copy_from_slice(text.as_bytes());
            end += text.len() as u64 + 1;
            at as u64
        };
        for (entry, (of, name, offset)) in (FIELD_TABLE..).step_by(48).zip(FIELDS) {
            let words = [text(&mut memory, of), text(&mut memory, name), 0];
            let is_static = u64::from(offset.is_none());
            // A table can lie about offsets, too.
            let lie = memory.noise(entry).is_multiple_of(8) && seed.is_multiple_of(4);
            let offset = offset.unwrap_or(0) + if lie { memory.noise(entry) % 99 } else { 0 };
            let rest = [is_static, offset, CODE + memory.noise(entry) % CODE_BYTES];
            for (at, word) in (entry..).step_by(8).zip(words.into_iter().chain(rest)) {
                memory.put(at, word);
            }
        }
        for (entry, (name, size)) in (TYPE_TABLE..).step_by(40).zip(TYPES) {
            let name = text(&mut memory, name);
            memory.put(entry, name);
            memory.put(entry + 32, size);
        }
        memory
    }

    fn put(&mut self, address: u64, word: u64) {
        let at = address as usize;
        self.start[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    fn noise(&self, address: u64) -> u64 {
        let mixed = (address ^ self.seed << 7).wrapping_mul(0x9fb2_1c65_1e98_df25);
        (mixed ^ mixed >> 31).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 3
    }

    /// Returns an arbitrary word: an address, a small number, or noise.
    fn lie(&self, address: u64) -> u64 {
        let noise = self.noise(address);
        match noise % 8 {
            0 => noise,
            1 => noise >> 8 & 0x1ff,
            2 => 0x5dc3_0000_0000_0000 | noise >> 16 & 0xff00_00e8,
            3 | 4 => noise >> 8 & 0x0101_0101_0101_0101,
            _ => CODE + (noise >> 8) % CODE_BYTES / 8 * 8,
        }
    }
}

impl Pieces for Lies {
    fn bytes(&self, start: u64, most: usize) -> Vec<u8> {
        self.reads.set(self.reads.get() + 1);
        let known = usize::try_from(start)
            .ok()
            .and_then(|at| self.start.get(at..));
        if let Some(known) = known {
            return known[..known.len().min(most)].to_vec();
        }
        let word = |at: u64| self.lie(at & !7).to_le_bytes()[(at & 7) as usize];
        let bytes = (start..=u64::MAX).take(most).map(word);
        bytes.collect()
    }
}

/// Stack of the process, which is as arbitrary.
struct Stack<'a>(&'a Lies);

impl Memory for Stack<'_> {
    fn word(&mut self, address: u64) -> Option<u64> {
        (!self.0.noise(address).is_multiple_of(64)).then(|| self.0.lie(address))
    }
}

struct Nowhere;

impl AddressSpace for Nowhere {
    fn code(&self, _address: u64) -> Code<'_> {
        Code::Unmapped
    }
}

/// Returns a machine whose code cache is where most words point.
fn machine(memory: &Lies) -> Option<Machine> {
    let tables = Tables::read(memory, [VARIABLES, VARIABLES + 8])?;
    let _ = layout::version(memory, &tables);
    let _ = layout::find(memory, &tables);
    let mut machine = layout::parse(memory, &tables)?;
    let layout = &mut machine.layout;
    (layout.code_start, layout.code_bytes) = (CODE, CODE_BYTES);
    for (heap, low) in layout
        .heaps
        .iter_mut()
        .zip([CODE, CODE + 0x4_0000, u64::MAX])
    {
        (heap.low, heap.segments) = (low, CODE + 0x8_0000);
    }
    layout.segment_shift = 7;
    layout.kind_mask = 1;
    layout.compiled &= 1;
    (layout.interpreter_start, layout.interpreter_bytes) = (CODE, 0x1_0000);
    (layout.entries_start, layout.entries_bytes) = (CODE + 0x8000, 0x4000);
    layout.call_stub_return = CODE + 0x1_0008;
    Some(machine)
}

#[test]
fn a_process_that_lies_is_read_within_bounds() {
    const MOST: usize = 64;
    let (mut machines, mut frames) = (0, 0);
    for seed in 0..2000 {
        let memory = Lies::new(seed);
        let Some(machine) = machine(&memory) else {
            continue;
        };
        machines += 1;
        memory.reads.set(0);
        let mut walker = Walker::new(&machine, &memory, MOST);
        let noise = memory.noise(seed);
        let sp = 0x7ffe_0000_0000 + noise % 512 * 8;
        let mut registers = Registers::new(CODE + noise % CODE_BYTES, sp, sp + noise % 99 * 8);
        registers.general[3] = memory.lie(3);
        registers.general[13] = sp + 16;
        let exact = seed.is_multiple_of(2);
        let stack = &mut Stack(&memory);
        let walk = walk_through(
            registers,
            exact,
            Mode::Auto,
            &Nowhere,
            &mut walker,
            stack,
            MOST,
        );
        let chain = Box::new(walker).into_chain();
        assert!(walk.addresses.len() <= MOST && chain.links.len() <= MOST + 1);
        assert!(walk.end != unwind::End::Root && chain.end != End::NoThread);
        let noted = chain.links.iter().filter_map(|link| match link {
            Link::Frame(frame) => Some(*frame),
            Link::Anchor(_) | Link::Span(..) => None,
        });
        for frame in noted {
            frames += 1;
            let inlined = compiled::functions(&memory, &machine, frame);
            for frame in inlined.unwrap_or_default().into_iter().chain([frame]) {
                let Frame { code, checksum, .. } = frame;
                let _ = method::read(&memory, &machine, code, checksum);
            }
        }
        assert!(
            memory.reads.get() < 200_000,
            "{seed}: {} reads",
            memory.reads.get()
        );
    }
    assert!(machines > 500 && frames > 20, "{machines} {frames}");
}

#[test]
fn a_machine_that_is_not_ready_has_no_layout() {
    let memory = Lies::new(1);
    let tables = Tables::read(&memory, [VARIABLES, VARIABLES + 8]).unwrap();
    assert!(!matches!(layout::find(&memory, &tables), Found::Machine(_)));
    assert!(Tables::read(&memory, [VARIABLES + 16, VARIABLES]).is_none());
}
