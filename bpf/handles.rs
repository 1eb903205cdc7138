//! Generates Rust handles for the maps, programs, constants and variables of the objects, with
//! their types from BTF. A misspelt name, or a value of another type, does not compile.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

use libbpf_rs::ObjectBuilder;
use libbpf_rs::btf::types::{DataSec, Int, IntEncoding, Var};
use libbpf_rs::btf::{Btf, BtfKind, BtfType, ReferencesType};

/// Sections of constants and of variables.
const SECTIONS: [&str; 2] = [".rodata", ".bss"];

/// Rust type of a name's handle, and the objects that have the name.
struct Handle {
    rust: String,
    objects: BTreeSet<String>,
}

type Handles = BTreeMap<String, Handle>;

/// Writes `handles.rs`, with a module each for maps, programs, constants and variables of the
/// objects that `compile::compile` has built.
///
/// # Errors
/// Two objects have different types for a constant or variable.
pub(crate) fn generate() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let (mut maps, mut programs) = (Handles::new(), Handles::new());
    let mut values = [Handles::new(), Handles::new()];
    for object in crate::compile::programs()? {
        let elf = fs::read(out.join(format!("{object}.bpf.o")))?;
        let open = ObjectBuilder::default().open_memory(&elf)?;
        // The maps of constants and variables have a dot in their names.
        let names = open.maps().map(|map| text(map.name()));
        for name in names.filter(|name| !name.contains('.')) {
            add(&mut maps, &name, "MapName", &object)?;
        }
        for program in open.progs() {
            add(&mut programs, &text(program.name()), "ProgramName", &object)?;
        }
        let btf = Btf::from_raw(&object, &elf)?.ok_or("an object has no BTF")?;
        for (section, handles) in SECTIONS.into_iter().zip(&mut values) {
            for (name, rust) in section_values(&btf, section) {
                add(handles, &name, &rust, &object)?;
            }
        }
    }
    let [constants, variables] = values;
    let text = [
        module("maps", "Names of maps.", &maps),
        module("programs", "Names of programs.", &programs),
        module("constants", "Constants, with their types.", &constants),
        module("variables", "Variables, with their types.", &variables),
    ];
    Ok(fs::write(out.join("handles.rs"), text.concat())?)
}

fn text(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

fn add(handles: &mut Handles, name: &str, rust: &str, object: &str) -> Result<(), String> {
    let handle = handles.entry(name.to_owned()).or_insert_with(|| Handle {
        rust: rust.to_owned(),
        objects: BTreeSet::new(),
    });
    handle.objects.insert(object.to_owned());
    if handle.rust == rust {
        return Ok(());
    }
    Err(format!(
        "{name} is {rust} in {object}, and {} in another object",
        handle.rust
    ))
}

/// Returns the names in a section, each with its handle's type. Pointers and arrays have no
/// handle.
fn section_values(btf: &Btf<'_>, section: &str) -> Vec<(String, String)> {
    let Some(found) = btf.type_by_name::<DataSec<'_>>(section) else {
        return Vec::new();
    };
    let value = |id| {
        let variable = btf.type_by_id::<Var<'_>>(id)?;
        let name = variable.name()?.to_str()?.to_owned();
        let value = rust_type(&variable.referenced_type(), section)?;
        let handle = match section {
            ".rodata" => "ConstantName",
            _ => "VariableName",
        };
        Some((name, format!("{handle}<{value}>")))
    };
    found
        .iter()
        .filter_map(|variable| value(variable.ty))
        .collect()
}

/// Returns the Rust type of a value in `section`. Programs may write any byte to a variable, so
/// a `bool` variable in C is a `u8` in Rust.
fn rust_type(found: &BtfType<'_>, section: &str) -> Option<String> {
    let found = found.skip_mods_and_typedefs();
    if let Ok(int) = Int::try_from(found) {
        return Some(match int.encoding {
            IntEncoding::Bool if section == ".rodata" => "bool".to_owned(),
            IntEncoding::Signed => format!("i{}", int.bits),
            _ => format!("u{}", int.bits),
        });
    }
    match found.kind() {
        BtfKind::Enum | BtfKind::Enum64 | BtfKind::Struct => Some(format!(
            "crate::types::{}",
            camel_case(found.name()?.to_str()?)
        )),
        _ => None,
    }
}

/// Converts `span_kind` to `SpanKind`, its name in `types.rs`.
fn camel_case(name: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
        first.to_uppercase() + rest
    };
    name.split('_').map(word).collect()
}

fn module(name: &str, doc: &str, handles: &Handles) -> String {
    let mut text = format!("/// {doc}\npub mod {name} {{\n    use crate::handles::*;\n");
    for (name, Handle { rust, objects }) in handles {
        let constant = name.to_uppercase();
        let (handle, _) = rust.split_once('<').unwrap_or((rust, ""));
        let objects: Vec<String> = objects.iter().map(|name| format!("`{name}`")).collect();
        let objects = objects.join(", ");
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "    /// `{name}` of {objects}.\n    \
             pub const {constant}: {rust} = {handle}::new(\"{name}\");"
        );
    }
    text + "}\n"
}
