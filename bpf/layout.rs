//! Compares the structs that libbpf-cargo generates from an object's BTF with that BTF.

use std::fmt::Write;

use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::btf::{Btf, HasSize};

/// Returns Rust assertions on the size of each struct of `skeleton` and on the offsets of its
/// members. The expected values are from the object's BTF.
pub(crate) fn assertions(btf: &Btf<'_>, skeleton: &str) -> String {
    let mut text = String::from("const _: () = {\n");
    for found in btf.type_by_kind::<Struct<'_>>() {
        let name = found.name().and_then(|name| name.to_str());
        let Some(name) = name.filter(|name| skeleton.contains(&format!("pub struct {name} {{")))
        else {
            continue;
        };
        // Writing to a String does not fail.
        let size = found.size();
        let _ = writeln!(text, "    assert!(size_of::<types::{name}>() == {size});");
        for member in found.iter() {
            let field = member.name.and_then(|field| field.to_str());
            if let (Some(field), MemberAttr::Normal { offset }) = (field, &member.attr) {
                let at = offset / 8;
                let field = match field {
                    "type" => "r#type",
                    "self" => "slf",
                    field => field,
                };
                let offset = format!("std::mem::offset_of!(types::{name}, {field})");
                let _ = writeln!(text, "    assert!({offset} == {at});");
            }
        }
    }
    text.push_str("};\n");
    text
}
