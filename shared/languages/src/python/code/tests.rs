#![allow(clippy::unwrap_used)]

use super::*;
use crate::python::LAYOUTS;

/// Objects of one version of CPython, at addresses of this process.
struct Made {
    code: Vec<u8>,
    kind: Vec<u8>,
    type_name: Vec<u8>,
    name: Vec<u8>,
    file: Vec<u8>,
    lines: Vec<u8>,
}

impl Made {
    fn new(layout: &Layout, lines: &[u8]) -> Made {
        let text = |text: &str| {
            let mut bytes = vec![0; usize::from(layout.ascii_data)];
            put(&mut bytes, 16, text.len() as u64);
            put(&mut bytes, 32, 1 << 2 | 1 << 5 | 1 << 6);
            [bytes, text.into()].concat()
        };
        let mut made = Made {
            code: vec![0; Layout::CODE_BYTES],
            kind: vec![0; 64],
            type_name: b"code\0".to_vec(),
            name: text("f;\n\u{1b}"),
            file: text("<string>"),
            lines: vec![0; 32],
        };
        put(&mut made.lines, 16, lines.len() as u64);
        made.lines.extend(lines);
        let pointer = |bytes: &Vec<u8>| bytes.as_ptr() as u64;
        put(&mut made.kind, 24, pointer(&made.type_name));
        for (offset, value) in [
            (8, pointer(&made.kind)),
            (layout.code_qualname, pointer(&made.name)),
            (layout.code_filename, pointer(&made.file)),
            (layout.code_line_table, pointer(&made.lines)),
        ] {
            put(&mut made.code, usize::from(offset), value);
        }
        let first_line = usize::from(layout.code_first_line);
        made.code[first_line] = 100;
        made
    }

    fn checksum(&self, layout: &Layout) -> u32 {
        let (file, name) = (self.file.as_ptr() as u64, self.name.as_ptr() as u64);
        // The first line comes from the code object, which a test may have changed.
        let at = usize::from(layout.code_first_line);
        let line = u32::from_le_bytes(*self.code[at..].first_chunk().unwrap());
        checksum(file, name, line)
    }

    fn read(&self, layout: &Layout) -> Option<CodeObject> {
        let memory = ProcessMemory::new(std::process::id());
        let checksum = self.checksum(layout);
        read(&memory, layout, self.code.as_ptr() as u64, checksum)
    }
}

fn put(bytes: &mut [u8], at: usize, word: u64) {
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

#[test]
fn checksums_are_those_of_the_c_code() {
    // A C compiler computed these values with the function in bpf/include/events.h.
    for (words, expected) in CHECKSUMS {
        let [file, name, line] = words;
        assert_eq!(checksum(file, name, line as u32), expected, "{words:x?}");
    }
}

const CHECKSUMS: [([u64; 3], u32); 4] = [
    ([0, 0, 0], 0x00000000),
    ([0x1, 0x2, 0x3], 0x460c3d72),
    ([0x7f1234567890, 0x7f1234567ab8, 0x11], 0xf47bf233),
    (
        [0xffffffffffffffff, 0x8000000000000000, 0xffffffff],
        0x5b44a97c,
    ),
];

#[test]
fn what_is_another_object_by_now_is_not_read() {
    for layout in LAYOUTS {
        let change = |change: &dyn Fn(&mut Made)| {
            let mut made = Made::new(layout, &[0, 1]);
            change(&mut made);
            made.read(layout).is_some()
        };
        assert!(change(&|_| {}));
        let (name, file) = (layout.code_qualname, layout.code_filename);
        let away = |offset: u16| move |made: &mut Made| put(&mut made.code, offset.into(), 8);
        assert!(!change(&away(name)));
        assert!(!change(&away(file)));
        assert!(!change(&away(8)), "no type");
        assert!(!change(&|made| made.type_name[3] = b'l'), "another type");
        assert!(!change(&|made| made.type_name[4] = b's'), "another type");
        assert!(!change(&|made| made.name[32] &= !0x20), "in two pieces");
        assert!(!change(&|made| put(&mut made.file, 16, 4097)), "too long");
        // Without its lines, the object is still valid.
        for size in [(1 << 20) + 1, u64::MAX] {
            let mut made = Made::new(layout, &[0, 1]);
            put(&mut made.lines, 16, size);
            let code = made.read(layout).unwrap();
            assert_eq!((code.line(0), code.line(-1)), (None, None));
        }
        let memory = ProcessMemory::new(std::process::id());
        assert_eq!(read(&memory, layout, 0, checksum(0, 0, 0)), None);
        assert_eq!(read(&memory, layout, u64::MAX - 9, 0), None);
    }
}

#[test]
fn tampered_objects_do_no_harm() {
    let mut random = tamper::Random::new(1);
    let mut read = 0;
    for turn in 0..30_000 {
        let layout = &LAYOUTS[turn % LAYOUTS.len()];
        let mut made = Made::new(layout, &[0x80, 1, 0xe8, 2, 3, 4]);
        for _ in 0..=random.below(3) {
            let value = match random.below(4) {
                0 => random.next_u64(),
                1 => random.next_u64() >> random.below(64),
                2 => made.kind.as_ptr() as u64 + random.below(64) as u64,
                _ => u64::MAX - random.below(64) as u64,
            };
            let Made {
                code,
                kind,
                name,
                file,
                lines,
                ..
            } = &mut made;
            let objects = [code, kind, name, file, lines];
            let object = objects.into_iter().nth(random.below(5)).unwrap();
            let at = random.below(object.len() / 8) * 8;
            put(object, at, value);
        }
        if let Some(code) = made.read(layout) {
            for instruction in [i32::MIN, -1, 0, 2, 100, i32::MAX] {
                code.line(instruction);
                code.is_shown(instruction);
            }
            read += 1;
        }
    }
    assert!((3000..29_000).contains(&read), "{read}");
}
