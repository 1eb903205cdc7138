//! The running kernel's verifier accepts every program. Needs root.
#![allow(clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

use libbpf_rs::ObjectBuilder;

#[test]
fn every_program_loads() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut loaded = 0;
    for entry in fs::read_dir(sources).expect("the sources") {
        let name = entry.expect("a file").file_name();
        let Some(program) = name.to_str().and_then(|name| name.strip_suffix(".bpf.c")) else {
            continue;
        };
        let object = Path::new(env!("OUT_DIR")).join(format!("{program}.bpf.o"));
        let open = ObjectBuilder::default().open_file(&object);
        open.and_then(|open| open.load())
            .unwrap_or_else(|error| panic!("load {program}, as root: {error}"));
        loaded += 1;
    }
    assert!(loaded > 0);
}
