//! Interpreters with overwritten frames.

use systemscope_tests::Turn;
use systemscope_tests::printed::python::UNKNOWN;
use systemscope_tests::programs::pythons::{Python, some_pythons};

use std::thread;

use super::{Stack, measure, script};

/// Python program that overwrites one of its frames, or an object to which the frame refers, and
/// then blocks for ever below this frame. The numbers are byte offsets of a frame's caller and
/// code, from each version's Include/internal/pycore_frame.h or Include/cpython/frameobject.h.
const HOSTILE: &str = "
import ctypes, gc, os, sys
gc.disable()
def word(address):
    return ctypes.c_uint64.from_address(address)
if sys.version_info < (3, 11):
    caller, code, begin = 24, 32, id
else:
    caller, code = (48, 32) if sys.version_info < (3, 12) else (8, 0)
    # A frame object refers to the frame.
    begin = lambda frame: word(id(frame) + 24).value
def outer():
    middle()
def middle():
    inner()
def inner():
    frame = begin(sys._getframe(1))
    garbage = ctypes.create_string_buffer(b'A' * 4096)
    name = id(middle.__code__.co_name)
    address, value = {
        'nothing': (ctypes.addressof(garbage), 0),
        'its caller is itself': (frame + caller, frame),
        'its caller is nowhere': (frame + caller, 16),
        'its caller is garbage': (frame + caller, ctypes.addressof(garbage)),
        'its code is nowhere': (frame + code, 16),
        'its code is garbage': (frame + code, ctypes.addressof(garbage)),
        'its name is endless': (name + 16, 1 << 62),
        'its name is longer than it is': (name + 16, 1 << 20),
    }[sys.argv[1]]
    reading, writing = os.pipe()
    word(address).value = value
    os.write(1, b'ready\\n'); os.read(reading, 1)
outer()
";

/// Kinds of damage, and whether the tool can notice that frames are missing.
const DAMAGES: [(&str, bool); 7] = [
    ("its caller is itself", true),
    ("its caller is nowhere", true),
    ("its caller is garbage", true),
    ("its code is nowhere", true),
    ("its code is garbage", true),
    ("its name is endless", false),
    ("its name is longer than it is", false),
];

/// Returns the only stack of a script that does this damage.
fn measure_damaged(python: &Python, damage: &str, flags: &str) -> Stack {
    let hostile = script(python, HOSTILE, damage);
    let (finished, mut stacks) = measure(hostile.pid(), hostile.folder(), flags);
    let stack = stacks.pop().filter(|_| stacks.is_empty());
    stack.unwrap_or_else(|| panic!("{python:?}, {damage}: {}", finished.stderr))
}

#[test]
fn an_interpreter_that_lies_loses_no_native_frame() {
    const LONGEST: usize = 4096;
    let _turn = Turn::share();
    for python in some_pythons() {
        let whole = measure_damaged(&python, "nothing", "");
        let with_its_own = measure_damaged(&python, "nothing", "--native-python");
        let names: Vec<String> = whole.calls().into_iter().map(|call| call.name).collect();
        let chain = ["<module>", "outer", "middle", "inner"];
        assert_eq!(names, chain.map(|name| format!("<string>:{name}")));
        assert_eq!(whole.unknown().count(), 0, "{python:?}: {whole:#?}");
        let check = |damage: &str, is_known: bool| {
            let stack = measure_damaged(&python, damage, "");
            let what = format!("{python:?}, {damage}: {stack:#?}");
            assert!(stack.value >= 950_000_000, "{what}");
            // All native frames are there. Evaluation functions of the interpreter may stand in the
            // places of missing Python frames.
            assert!(stack.native_beyond(&whole).is_some(), "{what}");
            assert!(with_its_own.native_beyond(&stack).is_some(), "{what}");
            // The frames that were not overwritten are right.
            let innermost = stack.calls().pop().map(|call| call.name);
            assert_eq!(innermost.as_deref(), Some("<string>:inner"), "{what}");
            let unknown = stack.unknown().count();
            assert!(!is_known || unknown > 0, "no {UNKNOWN:?}: {what}");
            let mut names = stack.frames.iter().map(|frame| frame.name.len());
            assert!(names.all(|length| length <= LONGEST), "{what}");
        };
        // The threads wait for most of the time, so they run side by side.
        thread::scope(|scope| {
            for (damage, is_known) in DAMAGES {
                let check = &check;
                scope.spawn(move || check(damage, is_known));
            }
        });
    }
}
