//! The running kernel's verifier accepts every program. Needs root.
#![allow(clippy::panic)]

use libbpf_rs::ObjectBuilder;

#[test]
fn every_program_loads() {
    assert!(!bpf::OBJECTS.is_empty());
    for object in bpf::OBJECTS {
        let open = ObjectBuilder::default().open_memory(object.elf);
        open.and_then(|open| open.load())
            .unwrap_or_else(|error| panic!("load {}, as root: {error}", object.name));
    }
}
