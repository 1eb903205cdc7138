//! Compares the frames of threads with the interpreter's own tracebacks.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use process::ProcessMemory;
use serde::Deserialize;

use super::{Target, interpreters};
use crate::Function;
use crate::interleave::Link;
use crate::python::{Anchoring, End, read, walk};

/// Thread of the target that is about to sleep.
#[derive(Deserialize)]
struct Row {
    thread: i32,
    /// Name, file and line of each frame, from leaf to root.
    chain: Vec<(String, String, u32)>,
}

#[test]
fn chains_are_those_that_the_interpreter_has() {
    for (minor, python) in interpreters() {
        let mut target = Target::start(&python, "frames");
        assert_eq!(target.interpreter.version.to_string(), format!("3.{minor}"));
        for frames in [9, 320] {
            let row: Row = target.row(&mut String::new()).unwrap();
            assert!(row.chain.len() >= frames, "3.{minor}: {}", row.chain.len());
            wait_until_it_sleeps(row.thread);
            check(&target, &row);
        }
    }
}

fn check(target: &Target, row: &Row) {
    let layout = target.layout;
    let version = target.interpreter.version;
    let mut memory = ProcessMemory::new(target.child.id());
    let registers = registers(row.thread);
    let (pointer, stack_pointer) = (registers.fs_base, registers.rsp);
    let chain = walk(&mut memory, layout, target.runtime, pointer, 2000);
    assert_eq!(chain.end, End::Whole, "{version}");

    let mut anchors = Vec::new();
    let mut named = Vec::new();
    let mut hidden = 0;
    for link in &chain.links {
        match *link {
            Link::Anchor(address) => anchors.push(address),
            Link::Span(..) => panic!("{link:?}"),
            Link::Frame(frame) => {
                let code = read(&memory, layout, frame.code, frame.checksum).unwrap();
                assert!(read(&memory, layout, frame.code, !frame.checksum).is_none());
                if code.is_shown(frame.instruction) {
                    let line = code.line(frame.instruction).unwrap();
                    named.push((code.name, code.file, line));
                } else {
                    hidden += 1;
                }
            }
        }
    }
    assert_eq!(named, row.chain, "{version}");
    // Hidden frames clean up after an __init__. 3.12 can have such frames, too, but has none here.
    let is_long = named.len() > 300;
    assert_eq!(hidden > 0, version.minor >= 13 && is_long, "{version}");

    let ascends = anchors.windows(2).all(|two| two[0] < two[1]);
    assert!(
        ascends && anchors.iter().all(|&at| at > stack_pointer),
        "{version}"
    );
    let frames = chain.links.len() - anchors.len();
    let ends_at_one = matches!(chain.links.last(), Some(Link::Anchor(_)));
    match layout.anchoring {
        Anchoring::Nothing => assert!(anchors.is_empty()),
        Anchoring::EveryFrame => assert_eq!(anchors.len(), frames, "{version}"),
        // A single native frame runs the calls from Python to Python.
        Anchoring::EntryFrames | Anchoring::BoundaryFrames => {
            assert!(ends_at_one && anchors.len() < frames, "{version}");
        }
    }

    // `walk` stops after `most` links, and finds no frames of another thread.
    for most in [0, 1, 5, chain.links.len() - 1, chain.links.len()] {
        let part = walk(&mut memory, layout, target.runtime, pointer, most);
        assert_eq!(part.links, chain.links[..most]);
        let is_whole = most == chain.links.len();
        assert_eq!(part.end, if is_whole { End::Whole } else { End::TooDeep });
    }
    let other = walk(&mut memory, layout, target.runtime, 0, 2000);
    assert_eq!((other.links, other.end), (vec![], End::NoThread));
    let nowhere = walk(&mut memory, layout, 1 << 63, pointer, 2000);
    assert_eq!((nowhere.links, nowhere.end), (vec![], End::ReadFailed));
}

fn wait_until_it_sleeps(thread: i32) {
    let state = || {
        let stat = fs::read_to_string(format!("/proc/{thread}/stat")).unwrap();
        stat.rsplit(')').next().unwrap().as_bytes()[1]
    };
    let switches = || {
        let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap();
        status[status.find("voluntary_ctxt_switches").unwrap()..].to_owned()
    };
    let mut before = switches();
    loop {
        sleep(Duration::from_millis(20));
        let now = switches();
        if state() == b'S' && now == before {
            break;
        }
        before = now;
    }
}

/// Returns the registers of a thread. The thread then continues to sleep.
fn registers(thread: i32) -> libc::user_regs_struct {
    // SAFETY: the struct consists of integers, so zeros are a valid value.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    let request = |request, data: *mut libc::c_void| {
        // SAFETY: `data` points to as many bytes as the request writes.
        let done = unsafe { libc::ptrace(request, thread, 0, data) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    };
    request(libc::PTRACE_ATTACH, std::ptr::null_mut());
    // SAFETY: the status pointer may be null.
    unsafe { libc::waitpid(thread, std::ptr::null_mut(), libc::__WALL) };
    request(libc::PTRACE_GETREGS, (&raw mut registers).cast());
    request(libc::PTRACE_DETACH, std::ptr::null_mut());
    registers
}
