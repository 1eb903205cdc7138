//! Tests with objects that are made in the memory of this process, for every version.

use std::sync::Arc;

use process::{Process, ProcessMemory};
use unwind::Memory;

use super::engine::Isolate;
use super::functions::checksum;
use super::heap::{Heap, State};
use super::layout::{LAYOUTS, Layout};
use super::positions::{Position, position};
use super::sizes;
use super::walk::walk;
use crate::interleave::Link;
use crate::language::{Function, Thread};
use crate::reader::{MemoryPieces, Shared};
use crate::{Chain, End, Frame};

/// Number of words of the memory.
const WORDS: usize = 4096;
/// Characters of the source. Its lines end in each of the ways that V8 knows.
const SOURCE: &str = "one\ntwo\rthree\r\nfour\u{2028}five";

/// Heap in the memory of this process.
struct Made {
    words: Vec<u64>,
    used: usize,
    layout: &'static Layout,
    map_of_maps: u64,
}

fn small(number: u64) -> u64 {
    number << 32
}

impl Made {
    fn new(layout: &'static Layout) -> Made {
        let mut made = Made {
            words: vec![0; WORDS],
            used: 0,
            layout,
            map_of_maps: 0,
        };
        let map = made.object(2);
        made.put(map, 0, map);
        made.put(map, 8, small(layout.types.map.into()));
        made.map_of_maps = map;
        made
    }

    /// Makes an object without a map.
    fn object(&mut self, words: usize) -> u64 {
        let address = &raw const self.words[self.used] as u64;
        self.used += words;
        address + 1
    }

    fn put(&mut self, object: u64, offset: u64, word: u64) {
        let start = self.words.as_ptr() as u64;
        let at = (object - 1 + offset - start) as usize;
        assert_eq!(at % 8, 0);
        self.words[at / 8] = word;
    }

    fn bytes_at(&mut self, object: u64, offset: u64, bytes: &[u8]) {
        for (index, piece) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            let at = offset + 8 * index as u64;
            self.put(object, at, u64::from_le_bytes(word));
        }
    }

    fn of_kind(&mut self, kind: u16, words: usize) -> u64 {
        let map = self.object(2);
        let map_of_maps = self.map_of_maps;
        self.put(map, 0, map_of_maps);
        self.put(map, 8, small(kind.into()));
        let object = self.object(words);
        self.put(object, 0, map);
        object
    }

    fn string(&mut self, text: &str) -> u64 {
        let units: Vec<u16> = text.encode_utf16().collect();
        let is_one_byte = units.iter().all(|unit| *unit < 256);
        let bytes: Vec<u8> = if is_one_byte {
            units.iter().map(|unit| *unit as u8).collect()
        } else {
            units.iter().flat_map(|unit| unit.to_le_bytes()).collect()
        };
        let kind = if is_one_byte { 8 } else { 0 };
        let string = self.of_kind(kind, 3 + bytes.len() / 8);
        self.put(string, 8, small(units.len() as u64));
        self.bytes_at(string, 16, &bytes);
        string
    }

    fn reference(&mut self, kind: u16, length: u64, first: u64, second: u64) -> u64 {
        let string = self.of_kind(kind, 4);
        self.put(string, 8, small(length));
        self.put(string, 16, first);
        self.put(string, 24, second);
        string
    }

    fn byte_array(&mut self, bytes: &[u8]) -> u64 {
        let array = self.of_kind(self.layout.types.bytes[0], 3 + bytes.len() / 8);
        self.put(array, 8, small(bytes.len() as u64));
        self.bytes_at(array, 16, bytes);
        array
    }

    /// Makes a table of positions from offsets in code and in the source.
    fn positions(&mut self, entries: &[(u32, u64)]) -> u64 {
        let mut table = Vec::new();
        let (mut code, mut source) = (-1_i64, 0_i64);
        for (offset, word) in entries {
            let delta = i64::from(*offset) - code;
            let shift = if self.layout.has_unsigned_deltas {
                2
            } else {
                1
            };
            variable_length(&mut table, (delta << shift) as u64);
            let delta = word.cast_signed() - source;
            variable_length(&mut table, ((delta << 1) ^ (delta >> 63)) as u64);
            (code, source) = (i64::from(*offset), word.cast_signed());
        }
        self.byte_array(&table)
    }

    fn script(&mut self, name: u64) -> u64 {
        let source = self.string(SOURCE);
        let script = self.of_kind(self.layout.types.script, 16);
        self.put(script, 8, source);
        self.put(script, 16, name);
        self.put(script, 24, small(10));
        self.put(script, 56, small(0));
        script
    }

    /// Makes a function that a scope names.
    fn function(&mut self, name: u64, script: u64, table: u64) -> u64 {
        let layout = self.layout;
        let scope = self.of_kind(layout.types.scope_info, 16);
        let flags = 1 << 12;
        let flags = if layout.scope_flags_are_smi {
            small(flags)
        } else {
            flags
        };
        self.put(scope, 8, flags);
        self.put(scope, 24, small(2));
        // Two locals take four slots.
        self.put(scope, 8 * (1 + layout.scope_first + 4), name);
        let bytecode = self.of_kind(layout.types.bytecode, 16);
        self.put(bytecode, 8, small(40));
        self.put(bytecode, layout.bytecode_positions.into(), table);
        let info = self.of_kind(layout.types.info, 8);
        self.put(info, 8, bytecode);
        self.put(info, layout.info_name.into(), scope);
        self.put(info, layout.info_script.into(), script);
        info
    }

    fn word(&self, object: u64, offset: u64) -> u64 {
        let start = self.words.as_ptr() as u64;
        self.words[((object - 1 + offset - start) / 8) as usize]
    }

    fn checksum_of(&self, info: u64) -> u32 {
        let name = self.word(info, self.layout.info_name.into());
        checksum(name, self.word(info, self.layout.info_script.into()))
    }

    /// Makes optimized code of `function`, which has `inlined` at its offset 100. Returns the
    /// address of its first instruction.
    fn optimized(&mut self, function: u64, inlined: u64) -> u64 {
        let layout = self.layout;
        let outer = position_word(2, 0);
        let inner = position_word(5, 1);
        let table = self.positions(&[(0, outer), (100, inner)]);
        let mut record = outer.to_le_bytes().to_vec();
        record.extend([0; 8]);
        let records = self.byte_array(&record);
        let literals = self.of_kind(layout.types.fixed_array, 3);
        self.put(literals, 8, small(1));
        // A weak reference.
        self.put(literals, 16, inlined | 2);
        let data = self.of_kind(layout.types.fixed_array, 16);
        self.put(data, 16 + 8 * layout.deopt_literals, literals);
        self.put(data, 16 + 8 * layout.deopt_positions, records);
        let own = if layout.deopt_function == 7 {
            let wrapper = self.of_kind(1, 2);
            self.put(wrapper, 8, function);
            wrapper
        } else {
            function
        };
        self.put(data, 16 + 8 * layout.deopt_function, own);

        let map = self.object(2);
        let map_of_maps = self.map_of_maps;
        self.put(map, 0, map_of_maps);
        self.put(map, 8, small(layout.types.instructions.into()));
        // Instructions are aligned.
        let start = &raw const self.words[self.used] as u64 + layout.code_header;
        let start = start.next_multiple_of(layout.code_alignment);
        let holder = start - layout.code_header + 1;
        self.used += 64;
        self.put(holder, 0, map);
        let code = if layout.code_start == 0 {
            holder
        } else {
            let code = self.of_kind(layout.types.code, 10);
            self.put(holder, 8, code);
            self.put(code, layout.code_start.into(), start);
            code
        };
        self.put(code, layout.code_data.into(), data);
        self.put(code, layout.code_positions.into(), table);
        for (offset, value) in [
            (layout.code_size, 200_u64),
            (layout.code_flags, u64::from(layout.baseline) + 2),
        ] {
            let offset = u64::from(offset);
            let before = self.word(code, offset & !7);
            self.put(code, offset & !7, before | value << (offset % 8 * 8));
        }
        start
    }

    fn with<T>(&self, read: impl FnOnce(&mut Heap<'_>) -> T) -> T {
        let mut heap = Heap {
            memory: &ProcessMemory::new(std::process::id()),
            pieces: &mut MemoryPieces::default(),
            layout: self.layout,
            state: &mut State::default(),
        };
        read(&mut heap)
    }
}

fn variable_length(table: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        table.push(number as u8 | 0x80);
        number >>= 7;
    }
    table.push(number as u8);
}

/// Returns a position at an offset in the source, in the inlined call with this number.
fn position_word(offset: u64, call: u64) -> u64 {
    (offset + 1) << 1 | call << 31
}

#[test]
fn functions_of_every_version_have_names_and_lines() {
    for layout in &LAYOUTS {
        let mut made = Made::new(layout);
        let path = made.string("file:///srv/a%20b/%E6%97%A5.js");
        let script = made.script(path);
        let table = made.positions(&[(0, position_word(1, 0)), (7, position_word(15, 0))]);
        let first = made.string("日本");
        let second = made.string("語");
        let name = made.reference(1, 3, first, second);
        let info = made.function(name, script, table);
        let sum = made.checksum_of(info);
        let function = made.with(|heap| heap.function(info - 1, sum)).unwrap();
        assert_eq!(function.name(), "日本語", "{:?}", layout.version);
        assert_eq!(function.file(), "/srv/a b/日.js");
        // Two lines end before the third one, and the script begins at line 11.
        let lines = [0, 6, 7, 1000].map(|offset| function.line(offset));
        assert_eq!(lines, [Some(11), Some(11), Some(14), Some(14)]);
        assert_eq!(function.line(-1), None);
        // A function without a name has its first line. Its positions follow the variable of its name.
        let unnamed = made.function(small(0), script, table);
        let scope = made.word(unnamed, layout.info_name.into());
        let start = layout.scope_start.unwrap_or(1 + layout.scope_first + 6);
        made.put(scope, 8 * start, small(15));
        let unnamed_sum = made.checksum_of(unnamed);
        let function = made.with(|heap| heap.function(unnamed - 1, unnamed_sum));
        let function = function.unwrap();
        assert_eq!(
            (function.name(), function.first_line()),
            ("(anonymous:14)", 14)
        );
        // Another function has another checksum, and other objects are no functions.
        assert!(made.with(|heap| heap.function(info - 1, sum ^ 1)).is_none());
        assert!(made.with(|heap| heap.function(script - 1, sum)).is_none());
        assert!(made.with(|heap| heap.function(0, sum)).is_none());
        assert!(made.with(|heap| heap.function(u64::MAX - 7, sum)).is_none());
    }
}

#[test]
fn strings_of_every_kind_are_read() {
    let mut made = Made::new(&LAYOUTS[0]);
    let text = made.string("0123456789");
    let sliced = made.reference(3 | 8, 4, text, small(3));
    let thin = made.reference(5 | 8, 4, sliced, 0);
    let characters = made.word(text, 16).to_le_bytes();
    let external = made.reference(2 | 8, 8, 0, characters.as_ptr() as u64);
    let of_both = made.reference(1 | 8, 12, thin, external);
    for (string, expected) in [
        (text, Some("0123456789")),
        (sliced, Some("3456")),
        (thin, Some("3456")),
        (external, Some("01234567")),
        (of_both, Some("345601234567")),
    ] {
        let read = made.with(|heap| heap.string(string, 100));
        assert_eq!(read.as_deref(), expected);
        assert_eq!(made.with(|heap| heap.string(string, 3)), None);
    }
    // A string that contains itself, and a part that its string does not have.
    let endless = made.reference(1, 8, 0, 0);
    made.put(endless, 16, endless);
    made.put(endless, 24, endless);
    let beyond = made.reference(3 | 8, 9, text, small(3));
    for string in [endless, beyond, 0, text - 1] {
        assert_eq!(made.with(|heap| heap.string(string, 100)), None);
    }
}

#[test]
fn inlined_functions_are_calls_of_their_own() {
    for layout in &LAYOUTS {
        let mut made = Made::new(layout);
        let path = made.string("/srv/a.js");
        let script = made.script(path);
        let table = made.positions(&[]);
        let outer = made.string("outer");
        let outer = made.function(outer, script, table);
        let inner = made.string("inner");
        let inner = made.function(inner, script, table);
        let start = made.optimized(outer, inner);
        let sum = made.checksum_of(outer);
        let what = format!("{:?}", layout.version);
        let call = |address| made.with(|heap| heap.call(outer - 1, sum, address));
        let before = call(start + 99).unwrap();
        assert_eq!(
            (before.name(), before.line(-1)),
            ("outer", Some(11)),
            "{what}"
        );
        assert!(before.inlined().is_empty(), "{what}");
        let inside = call(start + 100).unwrap();
        assert_eq!(
            (inside.name(), inside.line(-1)),
            ("outer", Some(11)),
            "{what}"
        );
        let [inlined] = inside.inlined() else {
            panic!("{what}: {inside:?}")
        };
        assert_eq!(
            (inlined.function.name(), inlined.line),
            ("inner", Some(12)),
            "{what}"
        );
        // Code of another function, and an address behind the code, have no line.
        let sum = made.checksum_of(inner);
        let other = made.with(|heap| heap.call(inner - 1, sum, start + 100));
        assert_eq!(other.unwrap().line(-1), None, "{what}");
        assert_eq!(call(start + 200).unwrap().line(-1), None, "{what}");
    }
}

#[test]
fn tampered_objects_do_no_harm() {
    let mut random = tamper::Random::new(1);
    let mut read = 0;
    for turn in 0..4000 {
        let layout = &LAYOUTS[turn % LAYOUTS.len()];
        let mut made = Made::new(layout);
        let path = made.string("/srv/a.js");
        let script = made.script(path);
        let table = made.positions(&[(0, position_word(1, 0)), (7, position_word(15, 0))]);
        let name = made.string("outer");
        let outer = made.function(name, script, table);
        let name = made.string("inner");
        let inner = made.function(name, script, table);
        let start = made.optimized(outer, inner);
        for _ in 0..=random.below(4) {
            let address = made.words.as_ptr() as u64 + 8 * random.below(made.used) as u64;
            let value = match random.below(5) {
                0 => random.next_u64(),
                1 => random.next_u64() >> random.below(64),
                2 => u64::MAX - random.below(64) as u64,
                3 => small(random.next_u64() >> random.below(64)),
                _ => address + 1,
            };
            let at = random.below(made.used);
            made.words[at] = value;
        }
        let sum = made.checksum_of(outer);
        made.with(|heap| {
            if let Some(function) = heap.function(outer - 1, sum) {
                for instruction in [i32::MIN, -1, 0, 7, i32::MAX] {
                    function.line(instruction);
                }
                read += 1;
            }
            for offset in [0, 100, 199] {
                heap.call(outer - 1, sum, start + offset);
            }
        });
    }
    assert!((1000..4000).contains(&read), "{read}");
}

#[test]
fn any_table_of_positions_is_read() {
    let mut random = tamper::Random::new(2);
    for _ in 0..20_000 {
        let table: Vec<u8> = (0..random.below(40))
            .map(|_| random.next_u64() as u8)
            .collect();
        for is_unsigned in [false, true] {
            if let Some(word) = position(&table, random.below(1000) as u32, is_unsigned) {
                Position::new(word);
            }
        }
    }
    assert_eq!(position(&[0x80; 30], 5, false), None);
    assert_eq!(position(&[], 5, true), None);
}

#[test]
fn bytecodes_have_the_size_of_their_prefix() {
    for layout in &LAYOUTS {
        let size = |code: &[u8]| sizes::size(layout.sizes, code);
        // LdaZero, and LdaSmi with operands of one, two and four bytes.
        let lda_smi = layout.sizes[0]
            .iter()
            .position(|digit| *digit == b'2')
            .unwrap() as u8;
        assert_eq!(size(&[lda_smi]), Some(2));
        assert_eq!(size(&[0, lda_smi]), Some(4));
        assert_eq!(size(&[1, lda_smi]), Some(6));
        assert_eq!([size(&[]), size(&[0]), size(&[255])], [None; 3]);
    }
}

/// Memory of a thread, as words at addresses.
struct Words<'a>(&'a Made);

impl Memory for Words<'_> {
    fn word(&mut self, address: u64) -> Option<u64> {
        let start = self.0.words.as_ptr() as u64;
        let at = address.checked_sub(start)? / 8;
        self.0.words.get(at as usize).copied()
    }
}

#[test]
fn frames_lead_through_entries() {
    for layout in &LAYOUTS {
        let mut made = Made::new(layout);
        let path = made.string("/srv/a.js");
        let script = made.script(path);
        let table = made.positions(&[]);
        let name = made.string("outer");
        let info = made.function(name, script, table);
        let bytecode = made.word(info, 8);
        let function = made.of_kind(1, 8);
        made.put(function, layout.function_shared.into(), info);
        // The stack: an exit frame, an interpreted frame, an entry frame; the same again.
        let stack = made.object(200) - 1;
        let frame = |index: u64| stack + 80 + 160 * index;
        let put = |made: &mut Made, address: u64, word| made.put(address + 1, 0, word);
        for index in 0..6_u64 {
            let fp = frame(index);
            put(&mut made, fp, if index == 5 { 1 } else { frame(index + 1) });
            match index % 3 {
                0 => put(&mut made, fp - 8, 3 << 1),
                1 => {
                    put(&mut made, fp - 8, function);
                    put(&mut made, fp - 16, function);
                    put(&mut made, fp - 32, bytecode);
                    let offset = u64::from(layout.bytecode_data) - 1 + 7;
                    put(&mut made, fp - 40, small(offset));
                }
                _ => {
                    put(&mut made, fp - 8, 1 << 1);
                    put(&mut made, fp - 64, if index == 2 { frame(3) } else { 0 });
                }
            }
        }
        let isolate = made.object(1) - 1;
        let thread = made.object(2) - 1;
        put(
            &mut made,
            thread,
            isolate.wrapping_sub(layout.c_entry_fp.into()),
        );
        put(&mut made, isolate, frame(0));
        let isolate = Isolate::AtOffset(0);
        let registers = Thread {
            pointer: thread,
            stack_pointer: stack,
        };
        let chain = |most, thread| walk(&mut Words(&made), layout, isolate, thread, most);
        let link = Link::Frame(Frame {
            code: info - 1,
            instruction: 7,
            checksum: made.checksum_of(info),
            machine_code: 0,
        });
        let links = vec![
            link,
            Link::Span(frame(0), frame(2)),
            link,
            Link::Span(frame(3), frame(5)),
        ];
        let whole = Chain {
            links: links.clone(),
            end: End::Whole,
            interrupted: None,
        };
        assert_eq!(chain(100, registers), whole, "{:?}", layout.version);
        assert_eq!(chain(3, registers).end, End::TooDeep);
        // The isolate of another thread has frames on another stack.
        let below = Thread {
            stack_pointer: frame(0) + 8,
            ..registers
        };
        assert_eq!(chain(100, below), Chain::empty(End::NoThread));
    }
}

#[test]
fn data_of_ended_processes_are_forgotten() {
    let mut shared = Shared::default();
    let process = Process {
        pid: 1,
        instance: 2,
    };
    let counted = Arc::new(());
    *shared.of::<Option<Arc<()>>>(process) = Some(Arc::clone(&counted));
    assert_eq!(Arc::strong_count(&counted), 2);
    shared.forget(|one| one != process);
    assert_eq!(Arc::strong_count(&counted), 2);
    shared.forget(|one| one == process);
    assert_eq!(Arc::strong_count(&counted), 1);
}
