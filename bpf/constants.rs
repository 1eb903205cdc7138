//! Generates Rust constants from `shared/constants.bpf.c`.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Enum;

use crate::compile::include_flags;

const SOURCE: &str = "shared/constants.bpf.c";

/// Compiles [`SOURCE`], and writes `constants.rs` with the values in the object's BTF.
pub(crate) fn generate() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={SOURCE}");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let object = out.join("constants.bpf.o");
    let includes = include_flags(".")?;
    SkeletonBuilder::new()
        .source(SOURCE)
        .obj(&object)
        .clang_args([
            includes[0].as_str(),
            includes[1].as_str(),
            "-Wall",
            "-Wno-unused-parameter",
        ])
        .build()?;
    let elf = fs::read(&object)?;
    let btf = Btf::from_raw("constants", &elf)?.ok_or("it has no BTF")?;
    let found: Enum<'_> = btf
        .type_by_name("shared_constant")
        .ok_or("it has no enum shared_constant")?;
    let mut values: BTreeMap<&str, u64> = BTreeMap::new();
    for member in found.iter() {
        let name = member.name.and_then(|name| name.to_str());
        let bits = u64::from(member.value as u32);
        let half = |prefix| name.and_then(|name: &str| name.strip_prefix(prefix));
        match (half("SHARED_LOW_"), half("SHARED_HIGH_")) {
            (Some(name), _) => *values.entry(name).or_default() |= bits,
            (_, Some(name)) => *values.entry(name).or_default() |= bits << 32,
            _ => return Err(format!("{name:?} is no half of a constant").into()),
        }
    }
    let mut text = String::new();
    for (name, value) in values {
        // Writing to a String does not fail.
        let _ = writeln!(text, "pub(crate) const {name}: u64 = {value:#x};");
    }
    Ok(fs::write(out.join("constants.rs"), text)?)
}
