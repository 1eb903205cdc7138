use languages::interleave::Link;
use languages::python::{Python, checksum};
use languages::{Chain, Layout};

use super::*;

const MINOR: u32 = 11;
/// ID of a process that does not exist, so nothing of it can be read.
const NOBODY: u32 = 10_000_000;
/// Address of the process's function, and addresses of the function's parts.
const CODE: u64 = 0x1000;
const NAME: u64 = 0x2000;
const FILE: u64 = 0x3000;
const FIRST_LINE: u32 = 7;

fn function_at(instruction: i32) -> Frame {
    Frame {
        code: CODE,
        instruction,
        checksum: checksum(FILE, NAME, FIRST_LINE),
        machine_code: 0,
    }
}

#[test]
fn stacks_are_counted_by_how_their_frames_ended() {
    let mut functions = Functions::default();
    assert_eq!(functions.notes(), [""; 0]);
    let process = Process {
        pid: NOBODY,
        instance: 1,
    };
    let extent = Extent {
        stack_pointer: 0,
        cfas: &[],
        reached_root: false,
    };
    let layout = Arc::new(Layout {
        language: &Python,
        version: MINOR,
        bytes: Vec::new(),
        details: None,
    });
    let mut symbolizer = Symbolizer::new();
    let mut mix = |end, functions_gone: i32| {
        let links = (0..functions_gone).map(|at| Link::Frame(function_at(at)));
        let frames = InterpretedFrames {
            process,
            layout: Arc::clone(&layout),
            chain: Chain {
                links: links.collect(),
                end,
                interrupted: None,
            },
        };
        functions.mix(&[Location::Unknown], &extent, &frames, &mut symbolizer);
    };
    // These frames have no anchor that shows where they belong.
    mix(End::Whole, 3);
    for (times, end) in [
        (2, End::ReadFailed),
        (4, End::TooDeep),
        (8, End::Broken),
        (16, End::NotRead),
        (32, End::NoThread),
    ] {
        (0..times).for_each(|_| mix(end, 0));
    }
    let expected = "stacks with Python functions: 1 of 31 whole; cut short: 2 read failed, \
         4 too deep, 8 not understood, 16 not read; 1 not placed; \
         3 functions were gone before they could be named";
    assert_eq!(functions.notes(), [expected]);
}
