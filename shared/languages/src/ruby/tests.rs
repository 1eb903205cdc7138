#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::HashMap;
use std::time::Duration;

use super::walk::Place;
use super::*;
use crate::Function;
use crate::interleave::{Link, activations};
use crate::made::{Made, Wild};
use crate::{Chain, End, Frame};

const SELF: u64 = 0x1_0000;
const INDEX: u64 = 0x1_1000;
const VECTOR: u64 = 0x1_2000;
const BLOCK: u64 = 0x1_3000;
const CONTEXT: u64 = 0x1_4000;
const STACK: u64 = 0x2_0000;
const FRAMES: u64 = 0x2_8000;
const ISEQ: u64 = 0x3_0000;
const BODY: u64 = 0x3_1000;
const CODE: u64 = 0x3_2000;
const LINES: u64 = 0x3_3000;
const POSITIONS: u64 = 0x3_4000;
const LABEL: u64 = 0x4_0000;
const PATH: u64 = 0x4_1000;
const PATHS: u64 = 0x4_2000;
const ENTRY: u64 = 0x5_0000;
const DEFINITION: u64 = 0x5_1000;
const SYMBOLS: u64 = 0x6_0000;
const IDS: u64 = 0x6_1000;
const SOME_IDS: u64 = 0x6_2000;
const ELEMENTS: u64 = 0x6_3000;
const NAME: u64 = 0x6_4000;

const PLACE: Place = Place {
    context: INDEX,
    symbols: SYMBOLS,
};

/// Writes a string. Its characters are in the object or elsewhere.
fn text(made: &mut Made, layout: &Layout, address: u64, text: &str, is_embedded: bool) {
    let length = text.len() as u64;
    if is_embedded {
        let short = if layout.embedded == 16 {
            length << 14
        } else {
            0
        };
        made.put(address, 5 | short);
        if layout.embedded == 24 {
            made.put(address + 16, length);
        }
        made.write(address + u64::from(layout.embedded), text.as_bytes());
    } else {
        made.put(address, 5 | 0x2000);
        made.put(address + 16, length);
        made.put(address + 24, address + 0x100);
        made.write(address + 0x100, text.as_bytes());
    }
}

/// Returns the memory of a thread that calls a function in C from a method.
fn thread(layout: &Layout) -> Made {
    let mut made = Made::default();
    let size = u64::from(layout.frame_bytes);
    made.put(INDEX, 3);
    made.put(INDEX + 8, 0x10);
    made.put(SELF + 8, VECTOR);
    made.put(VECTOR + 3 * 16, BLOCK);
    made.put(BLOCK + 0x10, CONTEXT);
    made.put(CONTEXT, STACK);
    made.put(CONTEXT + 8, (FRAMES + 3 * size - STACK) / 8);
    made.put(CONTEXT + 16, FRAMES);
    let frames = [(0x5555_0001, 0), (0x1111_0021, CODE + 16), (0x7999_0021, 0)];
    for (index, (flags, pc)) in frames.into_iter().enumerate() {
        let frame = FRAMES + index as u64 * size;
        let environment = STACK + 0x100 + index as u64 * 0x40;
        made.put(frame, pc);
        made.put(frame + 16, if pc == 0 { 0 } else { ISEQ });
        made.put(frame + 32, environment);
        made.put(environment, flags);
        made.put(environment - 16, ENTRY);
    }
    made.put(ISEQ + 16, BODY);
    // Four words of code, whose positions 0 and 3 begin lines.
    made.put(BODY, 4 << 32);
    made.put(BODY + 8, CODE);
    made.put(BODY + 64, PATHS);
    made.put(BODY + 80, LABEL);
    made.put(BODY + u64::from(layout.body_lines), LINES);
    made.write(BODY + u64::from(layout.body_count), &[2, 0, 0, 0]);
    made.put(BODY + u64::from(layout.body_index), POSITIONS);
    made.put(LINES, 7);
    made.put(LINES + u64::from(layout.line_bytes), 9);
    made.put(POSITIONS, 1 | 1 << 7 | 1 << 14 | 2 << 21);
    made.put(PATHS, 7 | 0x2000);
    made.put(PATHS + 16, PATH);
    text(&mut made, layout, PATH, "/srv/a longer path.rb", false);
    text(&mut made, layout, LABEL, "m\u{e9}thode", true);
    made.put(ENTRY, 6 << 12);
    made.put(ENTRY + 16, DEFINITION);
    made.put(DEFINITION + 32, 600 << 4);
    made.put(SYMBOLS + 16, IDS);
    made.put(IDS, 7 | 0x2000);
    made.put(IDS + 24, SOME_IDS);
    made.put(SOME_IDS, 7);
    made.put(SOME_IDS + 32, ELEMENTS);
    made.put(ELEMENTS + (600 - 512) * 16, NAME);
    text(&mut made, layout, NAME, "each", true);
    made
}

fn chain(layout: &Layout, made: &Made) -> Chain {
    walk(&mut made.clone(), layout, PLACE, SELF, 100)
}

#[test]
fn frames_of_every_version_are_read() {
    for layout in LAYOUTS {
        let made = thread(layout);
        let found = chain(layout, &made);
        assert_eq!(found.end, End::Whole, "3.{}", layout.minor);
        let [
            Link::Frame(in_c),
            Link::Frame(method),
            Link::Anchor(activations::ACTIVATION),
        ] = found.links[..]
        else {
            panic!("{:?}", found.links)
        };
        let function = read_stopped(&made, layout, in_c).unwrap();
        assert_eq!((&*function.name, &*function.file), ("each", ""));
        assert_eq!(function.line(0), None);
        let function = read_stopped(&made, layout, method).unwrap();
        assert_eq!(function.name, "m\u{e9}thode", "3.{}", layout.minor);
        assert_eq!(function.file, "/srv/a longer path.rb");
        assert_eq!((function.first_line, method.instruction), (7, 2));
        let lines = [0, 1, 3, 4].map(|position| function.line(position));
        assert_eq!(lines, [Some(7), Some(7), Some(7), Some(9)]);
        let checksum = !method.checksum;
        assert!(read_stopped(&made, layout, Frame { checksum, ..method }).is_none());
    }
}

#[test]
fn what_no_interpreter_leaves_is_broken() {
    for layout in LAYOUTS {
        let end = |change: &dyn Fn(&mut Made)| {
            let mut made = thread(layout);
            change(&mut made);
            let found = chain(layout, &made);
            (found.end, found.links.len())
        };
        let second = FRAMES + u64::from(layout.frame_bytes);
        assert_eq!(
            end(&|made| made.put(second + 32, STACK + 4)),
            (End::Broken, 1)
        );
        assert_eq!(end(&|made| made.put(second + 32, 8)), (End::ReadFailed, 1));
        assert_eq!(end(&|made| made.put(second, CODE - 8)), (End::Broken, 1));
        assert_eq!(end(&|made| made.put(second + 16, 8)), (End::ReadFailed, 1));
        assert_eq!(end(&|made| made.put(ISEQ + 16, BODY + 4)), (End::Broken, 1));
        assert_eq!(
            end(&|made| made.put(CONTEXT + 16, FRAMES + 4)),
            (End::Broken, 0)
        );
        let many = |made: &mut Made| made.put(CONTEXT + 8, 1 << 30);
        assert!(matches!(end(&many), (End::ReadFailed | End::TooDeep, _)));
        for (address, word) in [
            (INDEX, 0),
            (INDEX, 1 << 20),
            (VECTOR + 48, u64::MAX),
            (BLOCK + 16, 0),
            (CONTEXT, 0),
            (CONTEXT + 8, 1 << 40),
            (CONTEXT + 16, STACK - 8),
        ] {
            let found = end(&|made| made.put(address, word));
            assert_eq!(found, (End::NoThread, 0), "{address:x}");
        }
        // A function in C whose name cannot be found has no name.
        let mut made = thread(layout);
        made.put(ENTRY, 0);
        let Link::Frame(in_c) = chain(layout, &made).links[0] else {
            panic!("an anchor")
        };
        assert!(read_stopped(&made, layout, in_c).is_none());
    }
}

#[test]
fn memory_that_has_anything_does_no_harm() {
    let mut ends = HashMap::new();
    for seed in 1..20_000 {
        for layout in LAYOUTS {
            let mut memory = Wild::new(seed);
            let (chain, cost) = tamper::cost(|| walk(&mut memory, layout, PLACE, SELF, 200));
            assert!(chain.links.len() <= 200);
            assert!(cost.time < Duration::from_secs(1));
            *ends.entry(chain.end).or_insert(0) += 1;
        }
        let layout = &LAYOUTS[seed as usize % LAYOUTS.len()];
        let (_, cost) = tamper::cost(|| function::read_any(&Wild::new(seed), layout, BODY));
        assert!(cost.time < Duration::from_secs(1));
    }
    assert!(ends.len() >= 2, "{ends:?}");
}
