//! Compares three unwinders on the stacks of a busy Debian python3: the unwind in BPF, the same
//! unwind in Rust, and an independent unwinder. Needs root.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

mod checked;

use std::cell::Cell;
use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::{Duration, Instant};

use bpf::types::{EventKind, StackDump, StackEvent, WalkEnd};
use collect::{Unwinder, Walking};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use libbpf_rs::RingBufferBuilder;
use loader::Samplers;
use loader::iterators::copy_start;
use plain::Plain;
use profile::Rate;
use symbolize::Symbolizer;
use unwind::{End, Memory, Mode, Registers};

use checked::Python;

/// Script that calls deep into libraries that are built without frame pointers.
const BUSY: &str = "
import hashlib, json, re, threading, zlib
def once():
    json.loads(json.dumps([{'a': [1.5, 'x'] * 20}] * 20))
    hashlib.sha256(zlib.compress(b'abc' * 3000)).hexdigest()
    re.sub('(a|b)+c', lambda match: str(sorted(match.group(0))), 'abcabc' * 50)
def work():
    while True: once()
once()
print('ready', flush=True)
threading.Thread(target=work, daemon=True).start()
work()
";

/// Number of frames above which a stack counts as deep.
const DEEP: usize = 20;
/// Number of different deep stacks after which the test ends.
const ENOUGH: usize = 200;

/// Messages of the program about one stack.
#[derive(Default)]
struct Seen {
    walked: Option<(u32, Vec<u64>)>,
    dumped: Option<(StackDump, Vec<u8>)>,
}

struct Stack<'a>(&'a StackDump, &'a [u8]);

impl Memory for Stack<'_> {
    fn word(&mut self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.0.registers.general[7])?).ok()?;
        let bytes = self.1.get(offset..offset.checked_add(8)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().unwrap()))
    }
}

fn read<T: Plain + Copy + Default>(bytes: &[u8]) -> T {
    let mut value = T::default();
    plain::copy_from_bytes(&mut value, bytes).expect("enough bytes");
    value
}

#[test]
fn the_walks_in_bpf_in_rust_and_by_framehop_agree() {
    let python = Python::start(BUSY);
    let pid = python.pid();
    let object = python.load(&bpf::oncputime::OBJECT);
    let unwinder = Unwinder::new(Walking::default(), &object).unwrap();
    let mut unwinder = unwinder.expect("one that keeps tables");
    let processes = python.targets().processes(&object).unwrap();
    let [process] = processes[..] else {
        panic!("one process is expected: {processes:?}")
    };
    unwinder.prepare(&processes, &mut Symbolizer::new(), Duration::from_secs(10));

    let mut seen: HashMap<u64, Seen> = HashMap::new();
    let deep_ones = Cell::new(0);
    let mut ring = RingBufferBuilder::new();
    let events = object.map(bpf::maps::EVENTS).unwrap();
    ring.add(&events, |message| {
        match EventKind(read(message)) {
            EventKind::EVENT_STACK => {
                let event: StackEvent = copy_start(message);
                let frames = event.frames[..event.depth as usize].to_vec();
                let is_deep = frames.len() > DEEP;
                let walked = seen
                    .entry(event.hash)
                    .or_default()
                    .walked
                    .replace((event.walk_end, frames));
                deep_ones.set(deep_ones.get() + usize::from(is_deep && walked.is_none()));
            }
            EventKind::EVENT_STACK_DUMP => {
                let copy: StackDump = copy_start(message);
                let stack = &copy.stack[..copy.bytes as usize];
                seen.entry(copy.hash).or_default().dumped = Some((copy, stack.to_vec()));
            }
            _ => {}
        }
        0
    })
    .unwrap();
    let ring = ring.build().unwrap();
    let samplers = Samplers::attach(&object, None, Rate::Frequency(997), None).unwrap();
    object
        .variable(bpf::variables::WINDOW_START)
        .unwrap()
        .set(1_u64);
    // The loop ends once there are enough stacks, even if python3 gets little CPU time.
    let end = Instant::now() + Duration::from_secs(60);
    while deep_ones.get() < ENOUGH && Instant::now() < end {
        ring.poll(Duration::from_millis(20)).unwrap();
    }
    drop(samplers);
    ring.consume().unwrap();
    drop(ring);

    let oracle = oracle(pid);
    let mut cache = CacheX86_64::new();
    let (mut stacks, mut too_large, mut deep, mut as_framehop) = (0_u32, 0, 0, 0_u32);
    for Seen { walked, dumped } in seen.values() {
        let (Some((end, frames)), Some((copy, stack))) = (walked, dumped) else {
            continue;
        };
        deep += usize::from(frames.len() > DEEP);
        let registers = Registers {
            instruction_pointer: copy.registers.ip,
            general: copy.registers.general,
        };
        let space = unwinder.space(process).expect("tables of the process");
        let mut memory = Stack(copy, stack);
        let exact = copy.leaf_is_exact != 0;
        let walk = unwind::walk(registers, exact, Mode::Auto, space, &mut memory, 127);
        // A dump has at least 24 KiB of the stack, next to the leaf.
        if walk.end == End::ReadFailed && stack.len() > 24 << 10 {
            too_large += 1;
            assert!(frames.starts_with(&walk.addresses));
            continue;
        }
        assert_eq!(
            *frames, walk.addresses,
            "in BPF and in Rust, {:?} {copy:x?}",
            walk.end
        );
        assert_eq!(*end, WalkEnd::WALK_REACHED_ROOT.0, "{frames:x?}");

        stacks += 1;
        let start = UnwindRegsX86_64::new(
            registers.instruction_pointer,
            registers.stack_pointer(),
            registers.frame_pointer(),
        );
        let mut word = |address| memory.word(address).ok_or(());
        let mut iterator =
            oracle.iter_frames(registers.instruction_pointer, start, &mut cache, &mut word);
        let mut expected = Vec::new();
        while let Ok(Some(frame)) = iterator.next() {
            expected.push(frame.address());
        }
        if *frames == expected {
            as_framehop += 1;
        } else {
            eprintln!("{frames:x?}\nframehop {expected:x?}");
        }
    }
    println!(
        "{stacks} stacks, {deep} of more than {DEEP} frames, {as_framehop} as framehop has them; \
         {too_large} did not fit into a copy"
    );
    assert!(
        stacks > 100 && deep > 100,
        "{stacks} stacks, {deep} deep ones"
    );
    // framehop does not skip return addresses of system calls, which may be the first address of
    // the next rule.
    assert!(f64::from(as_framehop) >= 0.995 * f64::from(stacks));
}

/// Makes an independent unwinder that knows the files that a process maps.
fn oracle(pid: u32) -> UnwinderX86_64<Vec<u8>> {
    let mut unwinder = UnwinderX86_64::new();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut first: HashMap<&str, u64> = HashMap::new();
    for line in maps.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let Some(path) = fields.get(5).filter(|path| path.starts_with('/')) else {
            continue;
        };
        let (start, end) = fields[0].split_once('-').unwrap();
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        // The first mapping of a file begins at address 0 of the file, or at the address that the
        // file is linked for.
        let base = *first.entry(path).or_insert(number(start));
        if !fields[1].contains('x') {
            continue;
        }
        let sections = sections(path);
        let linked_at = if sections.fixed { base } else { 0 };
        let read = |range: &Option<(Range<u64>, u64)>| {
            let (range, offset) = range.clone()?;
            let mut bytes = vec![0; (range.end - range.start) as usize];
            let file = fs::File::open(path).unwrap();
            file.read_exact_at(&mut bytes, offset).unwrap();
            Some((range, bytes))
        };
        let (eh_frame_svma, eh_frame) = read(&sections.eh_frame).unzip();
        let (eh_frame_hdr_svma, eh_frame_hdr) = read(&sections.eh_frame_hdr).unzip();
        let (text_svma, text) = read(&sections.text).unzip();
        unwinder.add_module(Module::new(
            (*path).to_owned(),
            number(start)..number(end),
            base,
            ExplicitModuleSectionInfo {
                base_svma: linked_at,
                text_svma,
                text,
                eh_frame_svma,
                eh_frame,
                eh_frame_hdr_svma,
                eh_frame_hdr,
                ..Default::default()
            },
        ));
    }
    unwinder
}

/// Addresses of a file's sections, and their offsets in the file.
#[derive(Default)]
struct Sections {
    /// True if the file is linked for one address and mapped there.
    fixed: bool,
    eh_frame: Option<(Range<u64>, u64)>,
    eh_frame_hdr: Option<(Range<u64>, u64)>,
    text: Option<(Range<u64>, u64)>,
}

fn sections(path: &str) -> Sections {
    let output = Command::new("readelf")
        .args(["-hSW", path])
        .output()
        .unwrap();
    let mut sections = Sections::default();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        sections.fixed |= line.trim_start().starts_with("Type:") && line.contains("EXEC");
        // A line has the format "[Nr] Name Type Address Off Size …".
        let Some((_, section)) = line.split_once(']') else {
            continue;
        };
        let fields: Vec<&str> = section.split_whitespace().collect();
        let number = |index: usize| u64::from_str_radix(fields.get(index)?, 16).ok();
        let slot = match fields.first() {
            Some(&".eh_frame") => &mut sections.eh_frame,
            Some(&".eh_frame_hdr") => &mut sections.eh_frame_hdr,
            Some(&".text") => &mut sections.text,
            _ => continue,
        };
        if let (Some(address), Some(offset), Some(size)) = (number(2), number(3), number(4)) {
            *slot = Some((address..address + size, offset));
        }
    }
    sections
}
