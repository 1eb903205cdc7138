//! The running kernel's verifier accepts every program. Needs root.
#![allow(clippy::panic)]

use libbpf_rs::ObjectBuilder;

#[test]
fn every_program_loads() {
    assert!(!bpf::OBJECTS.is_empty());
    // What asks for a helper that 5.10 lacks is done without there.
    let optional = bpf::kernel_names::OBJECT.name;
    let needed = bpf::OBJECTS.iter().filter(|object| object.name != optional);
    for object in needed {
        let open = ObjectBuilder::default().open_memory(object.elf);
        open.and_then(|open| open.load())
            .unwrap_or_else(|error| panic!("load {}, as root: {error}", object.name));
    }
}
