#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::HashMap;
use std::time::Duration;

use super::*;
use crate::Function;
use crate::interleave::{Link, activations};
use crate::made::{Made, Wild};
use crate::{Chain, End};

const GLOBALS: u64 = 0x1_0000;
const FRAMES: u64 = 0x2_0000;
const FUNCTION: u64 = 0x3_0000;
const INTERNAL: u64 = 0x4_0000;
const CODE: u64 = 0x5_0000;
const NAME: u64 = 0x6_0000;
const FILE: u64 = 0x6_1000;
const CLASS: u64 = 0x6_2000;
const CLASS_NAME: u64 = 0x6_3000;

fn text(made: &mut Made, address: u64, text: &str) {
    // A counter, IS_STRING with flags, the hash, and the length.
    made.put(address, 1 | 0x56 << 32);
    made.put(address + 8, 0x1234);
    made.put(address + 16, text.len() as u64);
    made.write(address + 24, text.as_bytes());
}

fn frame_at(index: u64) -> u64 {
    FRAMES + index * 0x60
}

/// Returns the memory of a process that calls a function in C from a method, and the method from
/// the method, in two activations.
fn process(layout: &Layout) -> Made {
    let mut made = Made::default();
    made.put(GLOBALS + u64::from(layout.current), frame_at(0));
    for index in 0..3 {
        let frame = frame_at(index);
        made.put(frame, CODE + 32);
        made.put(frame + 24, if index == 0 { INTERNAL } else { FUNCTION });
        made.put(frame + 40, 1 << 17);
        made.put(frame + 48, if index < 2 { frame_at(index + 1) } else { 0 });
    }
    made.write(FUNCTION, &[2]);
    made.put(FUNCTION + 8, NAME);
    made.put(FUNCTION + 16, CLASS);
    made.put(FUNCTION + u64::from(layout.function_opcodes), CODE);
    made.write(FUNCTION + u64::from(layout.function_count), &[3, 0, 0, 0]);
    made.put(FUNCTION + u64::from(layout.function_file), FILE);
    made.put(FUNCTION + u64::from(layout.function_file) + 8, 5 | 9 << 32);
    made.write(INTERNAL, &[1]);
    made.put(INTERNAL + 8, NAME);
    made.put(CLASS + 8, CLASS_NAME);
    for (number, line) in [6, 7, 8].into_iter().enumerate() {
        made.put(CODE + 32 * number as u64 + 24, line);
    }
    text(&mut made, NAME, "m\u{e9}thode");
    text(&mut made, FILE, "/srv/a.php");
    text(&mut made, CLASS_NAME, "App\\A@anonymous\0/srv/a.php:5$0");
    made
}

fn chain(layout: &Layout, made: &Made) -> Chain {
    walk(&mut made.clone(), layout, true, GLOBALS, 100)
}

#[test]
fn frames_of_every_version_are_read() {
    for layout in LAYOUTS {
        let made = process(layout);
        let found = chain(layout, &made);
        assert_eq!(found.end, End::Whole, "8.{}", layout.minor);
        let [
            Link::Frame(internal),
            Link::Frame(method),
            Link::Anchor(activations::ACTIVATION),
            Link::Frame(_),
            Link::Anchor(activations::ACTIVATION),
        ] = found.links[..]
        else {
            panic!("{:?}", found.links)
        };
        let read =
            |frame: crate::Frame| read_stopped(&made, layout, true, frame.code, frame.checksum);
        let function = read(method).unwrap();
        assert_eq!(function.name, "App\\A@anonymous::m\u{e9}thode");
        assert_eq!((&*function.file, function.first_line), ("/srv/a.php", 5));
        assert_eq!(function.line(method.instruction), Some(7));
        assert_eq!((function.line(-1), function.line(3)), (None, None));
        let function = read(internal).unwrap();
        assert_eq!((&*function.name, &*function.file), ("m\u{e9}thode", ""));
        let checksum = !method.checksum;
        assert!(read(crate::Frame { checksum, ..method }).is_none());
    }
}

#[test]
fn another_function_at_the_same_address_has_another_checksum() {
    let layout = &LAYOUTS[1];
    let checksum = |change: &dyn Fn(&mut Made)| {
        let mut made = process(layout);
        change(&mut made);
        match chain(layout, &made).links[1] {
            Link::Frame(frame) => frame.checksum,
            _ => panic!("an anchor"),
        }
    };
    let same = checksum(&|_| ());
    let file = FUNCTION + u64::from(layout.function_file);
    for (address, word) in [
        (FUNCTION + 8, FILE),
        (FUNCTION + 16, 0),
        (file, NAME),
        (file + 8, 6 | 9 << 32),
        (FUNCTION + u64::from(layout.function_opcodes), CODE + 8),
        // The hashes of the name and of the file.
        (NAME + 8, 0x1235),
        (FILE + 8, 0x1235),
    ] {
        assert_ne!(
            checksum(&|made| made.put(address, word)),
            same,
            "{address:x}"
        );
    }
    // A function in shared memory stays, so its strings are not read.
    let shared = |made: &mut Made| made.write(FUNCTION + 4, &[0x80, 0, 0, 0]);
    let other = |made: &mut Made| {
        shared(made);
        made.put(NAME + 8, 0x1235);
    };
    assert_eq!(checksum(&shared), checksum(&other));
}

#[test]
fn what_no_interpreter_leaves_is_broken() {
    let layout = &LAYOUTS[1];
    let end = |change: &dyn Fn(&mut Made)| {
        let mut made = process(layout);
        change(&mut made);
        let found = chain(layout, &made);
        (found.end, found.links.len())
    };
    let first = frame_at(0);
    assert_eq!(
        end(&|made| made.put(first + 24, INTERNAL + 4)),
        (End::Broken, 0)
    );
    assert_eq!(end(&|made| made.put(first + 24, CODE)), (End::Broken, 0));
    assert_eq!(end(&|made| made.put(first + 24, 8)), (End::ReadFailed, 0));
    assert_eq!(
        end(&|made| made.put(first + 48, frame_at(1) + 4)),
        (End::Broken, 1)
    );
    assert_eq!(
        end(&|made| made.put(first + 48, first)),
        (End::TooDeep, 100)
    );
    // A ring of frames without functions.
    let ring = |made: &mut Made| {
        made.put(first + 24, 0);
        made.put(first + 48, first);
    };
    assert_eq!(end(&ring), (End::TooDeep, 0));
    let current = GLOBALS + u64::from(layout.current);
    assert_eq!(end(&|made| made.put(current, 0)), (End::NoThread, 0));
    assert_eq!(end(&|made| made.put(current, 9)), (End::Broken, 0));
    // An instruction of another function has no line.
    let mut made = process(layout);
    made.put(frame_at(1), CODE + 96);
    let Link::Frame(frame) = chain(layout, &made).links[1] else {
        panic!("an anchor")
    };
    assert_eq!(frame.instruction, -1);
}

#[test]
fn memory_that_has_anything_does_no_harm() {
    let mut ends = HashMap::new();
    for seed in 1..20_000 {
        for layout in LAYOUTS {
            let mut memory = Wild::new(seed);
            let (chain, cost) = tamper::cost(|| walk(&mut memory, layout, true, GLOBALS, 200));
            assert!(chain.links.len() <= 200);
            assert!(cost.time < Duration::from_secs(1));
            *ends.entry(chain.end).or_insert(0) += 1;
        }
        let layout = &LAYOUTS[seed as usize % LAYOUTS.len()];
        // The memory changes at each read, so the checksum is that of a header by chance.
        let (_, cost) = tamper::cost(|| function::read_any(&Wild::new(seed), layout, FUNCTION));
        assert!(cost.time < Duration::from_secs(1));
    }
    assert!(ends.len() >= 3, "{ends:?}");
}
